"""The study directory and the study file: what is read from disk and written to it."""
