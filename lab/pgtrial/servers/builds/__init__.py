"""Servers and extensions that are built from source on this machine, and kept for all studies."""
