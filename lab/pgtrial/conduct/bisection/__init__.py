"""Bisection: which commit between two is the first with a difference in speed, by one sequential study a step."""
