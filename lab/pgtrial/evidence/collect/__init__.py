"""Collectors of facts, which describe what an arm is."""
