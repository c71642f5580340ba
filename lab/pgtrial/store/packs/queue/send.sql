\set draw random(0, 99)
WITH sent AS (
    INSERT INTO queue_jobs (poison, payload)
        SELECT (:draw + i) % 100 < :poison_percent, repeat(md5(i::text), 4) FROM generate_series(1, :batch) AS i
        RETURNING id
)
INSERT INTO queue_sent (jobs, ids) SELECT count(*), sum(id) FROM sent;
