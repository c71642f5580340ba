"""How the servers of the arms come to exist, are configured, and are put back."""
