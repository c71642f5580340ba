INSERT INTO queue_jobs (poison, payload)
    SELECT i % 100 < :poison_percent, repeat(md5(i::text), 4) FROM generate_series(1, 10000 * :scale) AS i;
INSERT INTO queue_sent (jobs, ids) SELECT count(*), sum(id) FROM queue_jobs;
