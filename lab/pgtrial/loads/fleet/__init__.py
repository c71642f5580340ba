"""The machines that make a load together, each with one engine."""
