-- The oldest jobs that nobody else has. A poisoned one fails: it is tried again, and after the last attempt buried.
WITH taken AS (
    SELECT id, attempts, poison FROM queue_jobs ORDER BY id LIMIT :batch FOR UPDATE SKIP LOCKED
), again AS (
    UPDATE queue_jobs SET attempts = queue_jobs.attempts + 1 FROM taken
        WHERE queue_jobs.id = taken.id AND taken.poison AND taken.attempts + 1 < :attempts
), gone AS (
    DELETE FROM queue_jobs USING taken
        WHERE queue_jobs.id = taken.id AND NOT (taken.poison AND taken.attempts + 1 < :attempts)
        RETURNING taken.id, taken.poison, taken.attempts + 1 AS attempts
), buried AS (
    INSERT INTO queue_dead (job, attempts) SELECT id, attempts FROM gone WHERE poison
)
INSERT INTO queue_done (job) SELECT id FROM gone WHERE NOT poison;
