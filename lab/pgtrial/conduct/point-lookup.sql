\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid AND (SELECT count(*) FROM generate_series(1, current_setting('pgtrial.work')::int)) >= 0;
