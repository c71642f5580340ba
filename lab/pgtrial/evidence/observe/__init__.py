"""Observes servers and hosts during a trial, and records second by second what they do."""
