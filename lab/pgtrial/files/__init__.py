"""Reads, writes and locks files of this machine, and finds out whether other accounts could replace them."""
