"""Runs a study from its plan to its end, trial by trial."""
