"""Measures the load engine beside pgbench, sysbench and the least that a client can do; `python -m bench`."""
