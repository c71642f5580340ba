"""Collectors of facts: what an arm is."""
