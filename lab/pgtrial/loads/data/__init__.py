"""The data that trials need on their servers: what it is, making it, and its state before a trial."""
