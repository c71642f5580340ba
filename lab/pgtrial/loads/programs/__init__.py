"""Client programs as loads: one process for each trial, in turns of batches."""
