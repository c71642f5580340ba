"""Runs trials: the steps of a trial, from the start of its server to its record, and trials that run at the same
time."""
