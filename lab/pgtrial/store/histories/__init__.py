"""Histories: a file of JSON lines for each study, one line for each commit, in a directory or on a branch of git."""
