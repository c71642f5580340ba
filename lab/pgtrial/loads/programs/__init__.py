"""Runs client programs of the user as loads: one process in each trial, and the programs alternate after batches of
operations."""
