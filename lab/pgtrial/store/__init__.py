"""The study directory: what is written once, atomically, and how it is read back."""
