"""Counts the CPU instructions of a server's sessions by valgrind's tool callgrind, and reads its files."""
