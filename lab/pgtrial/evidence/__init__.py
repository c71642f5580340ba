"""Collects the facts of the arms (hardware, software and settings of their servers) before the trials, and observes
servers and hosts during the trials."""
