"""Hosts that pgtrial reaches by ssh: the connection to a host, and commands that run there exactly once even if the
connection is lost."""

PATIENCE_S = 30.0
"""The time for which pgtrial tries to reach a host again that it has reached before, in seconds."""

HURRY_S = 5.0
"""The time for which pgtrial tries to reach a host again after the user has interrupted pgtrial and waits for its end,
in seconds."""
