"""Decides what a study has found: which claims it makes, what each look says about them, and which findings forbid a
verdict. No other package makes these decisions."""
