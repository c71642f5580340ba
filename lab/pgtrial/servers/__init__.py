"""Provides the servers of the arms: makes or reaches them, loads their data, gives them the settings of their arms for
each trial, and restores what was changed."""
