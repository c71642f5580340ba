"""Running: one trial, and the study that is made of them."""
