"""A client program for pgtrial: single rows by psycopg. The server is that of PGHOST, PGUSER and the like."""

import json
import random
import sys
import time

import psycopg

OPERATIONS = 500
QUERY = "SELECT abalance FROM pgbench_accounts WHERE aid = %s"

print(json.dumps({"program": "psycopg", "version": psycopg.__version__}), flush=True)
with psycopg.connect(autocommit=True) as connection:
    if "--unprepared" in sys.argv:
        connection.prepare_threshold = None
    for token in sys.stdin:  # "go 1"
        begin = time.perf_counter()
        for _ in range(OPERATIONS):
            connection.execute(QUERY, [random.randint(1, 100_000)]).fetchone()
        ms = 1000 * (time.perf_counter() - begin)
        print(json.dumps({"batch": int(token.split()[1]), "ms": ms, "operations": OPERATIONS}), flush=True)
