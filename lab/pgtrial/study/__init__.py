"""The question: the study file, its check, and the plan that follows from it."""
