"""Reads and writes histories. A history is a file of JSON lines for a study, with a line for each commit; it is in a
directory or on a branch of git."""
