"""Other hosts, reached by ssh: the connection, and commands that run there once."""
