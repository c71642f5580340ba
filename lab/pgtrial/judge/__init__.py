"""Judges numbers that were measured without pgtrial: reads a table of them, and says what they can and cannot tell."""
