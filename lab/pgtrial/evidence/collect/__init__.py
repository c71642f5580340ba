"""Collects the facts of an arm: the hardware, the operating system, the storage, the server and its settings."""
