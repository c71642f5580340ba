"""The only package that decides: what a study compares, what its looks say, and which findings forbid a verdict."""
