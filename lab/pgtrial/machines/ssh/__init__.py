"""Other hosts, reached by ssh: the connection, and commands that run there once."""

PATIENCE_S = 30.0
"""For how long a host that was there is tried again."""

HURRY_S = 5.0
"""The same when somebody waits for pgtrial to end."""
