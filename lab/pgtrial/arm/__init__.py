"""How an arm comes to exist, is served for a trial, and is put back."""
