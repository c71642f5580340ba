"""The study: what its file may say, and what follows from that alone."""
