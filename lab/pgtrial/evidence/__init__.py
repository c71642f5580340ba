"""The evidence on the arms and their trials: facts that are collected, and observations during the trials."""
