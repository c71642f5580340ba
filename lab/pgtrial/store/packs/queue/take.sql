-- Takes the oldest jobs that no other worker has locked. A poisoned job fails: it is tried again, and after its last
-- attempt it becomes a dead letter. Jobs are found by an array of ids, since for a join PostgreSQL would scan the table.
WITH taken AS (
    SELECT id, attempts, poison FROM queue_jobs ORDER BY id LIMIT :batch FOR UPDATE SKIP LOCKED
), again AS (
    UPDATE queue_jobs SET attempts = attempts + 1
        WHERE id = ANY (ARRAY(SELECT id FROM taken WHERE poison AND attempts + 1 < :attempts))
), gone AS (
    DELETE FROM queue_jobs
        WHERE id = ANY (ARRAY(SELECT id FROM taken WHERE NOT (poison AND attempts + 1 < :attempts)))
        RETURNING id, poison, attempts + 1 AS attempts
), buried AS (
    INSERT INTO queue_dead (job, attempts) SELECT id, attempts FROM gone WHERE poison
)
INSERT INTO queue_done (job) SELECT id FROM gone WHERE NOT poison;
