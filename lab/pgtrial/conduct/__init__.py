"""One trial, and the study from its plan to its end."""
