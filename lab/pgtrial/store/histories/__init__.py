"""Reads and writes histories. A history is a file of JSON lines for a study that is run again for each commit of a
repository: it has a line with the results of each commit. The file is in a directory or on a branch of git."""
