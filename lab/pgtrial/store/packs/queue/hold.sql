-- The snapshot of a report that somebody has begun and not ended: no row that is deleted from now on can be removed.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM queue_jobs;
