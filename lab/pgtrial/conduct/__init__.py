"""Plans a study, and runs it from its first trial to its end."""
