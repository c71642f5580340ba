"""What servers and hosts do during a trial, second by second."""
