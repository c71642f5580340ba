"""Collects the facts of the arms before their trials, and observes servers and hosts during the trials."""
