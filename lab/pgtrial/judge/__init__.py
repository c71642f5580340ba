"""Judges numbers that the user measured without pgtrial: reads a table of them, and says what they show and what they
do not show."""
