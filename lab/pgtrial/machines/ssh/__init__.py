"""Hosts that are reached by ssh: the connection, and commands that run there exactly once."""

PATIENCE_S = 30.0
"""How long pgtrial tries again to reach a host that was there before, in seconds."""

HURRY_S = 5.0
"""The same time while somebody waits for pgtrial to end, in seconds."""
