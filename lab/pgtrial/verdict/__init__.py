"""The one room that decides: what a study compares, what its looks say, and what forbids a verdict."""
