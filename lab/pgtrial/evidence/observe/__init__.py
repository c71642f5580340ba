"""Observers of servers and hosts, which record second by second what they do during a trial."""
