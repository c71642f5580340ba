\set aid random(1, 100000 * :scale)
\sleep 2 ms
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
