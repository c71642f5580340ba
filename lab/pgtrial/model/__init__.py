"""Ground floor, no I/O: quantities, the study, and everything that is stored of it, as types."""
