"""Hosts that are reached by ssh: the connection, and commands that run there exactly once."""

PATIENCE_S = 30.0
"""How long pgtrial tries again to reach a host that was there before, in seconds."""

HURRY_S = 5.0
"""How long pgtrial tries again to reach such a host once the user has interrupted pgtrial and waits for its end, in
seconds."""
