"""Load once, keep as a template, copy for every trial: all trials start from the same bytes."""
