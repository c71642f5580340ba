"""Flushes in labs that tests start as processes."""

BY_DD = """
from pgtrial.evidence.collect import flush

by_any_program = flush.flush_rate
flush.flush_rate = lambda machine, directory, program=None: by_any_program(machine, directory)
"""
"""Python code that has a lab measure flushes by dd alone. pg_test_fsync takes seconds of processor time an arm."""
