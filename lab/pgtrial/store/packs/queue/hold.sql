-- The snapshot of a long report: as long as it is open, VACUUM cannot remove any row that is deleted from now on.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM queue_jobs;
