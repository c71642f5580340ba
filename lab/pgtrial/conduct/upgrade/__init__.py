"""Rehearses an upgrade: runs each statement of a load on the old and on the new version, on the same data, and compares
errors, rows and plans."""
