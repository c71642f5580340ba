"""The study file: the types of its sections and keys, and everything that follows from the file alone, without a look
at a machine or a server."""
