"""Decides what a study does: its load points, the order and the lengths of its trials, their number, and when it ends.
Starts nothing."""
