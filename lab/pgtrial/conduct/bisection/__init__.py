"""Bisection: finds the first commit between two commits that changed the speed. Each step runs one sequential study."""
