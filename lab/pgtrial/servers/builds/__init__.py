"""Builds servers and extensions from source on this machine, and keeps them for all studies."""
