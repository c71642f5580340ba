-- No job is lost: each job that was sent is waiting, done, or a dead letter. Each row that a query returns is an error.
SELECT format('jobs were lost or made up: %s were sent, and %s wait, are done or are dead', sent.jobs, there.jobs)
    FROM (SELECT sum(jobs) AS jobs, sum(ids) AS ids FROM queue_sent) AS sent,
        (SELECT count(*) AS jobs, sum(id) AS ids FROM (
            SELECT id FROM queue_jobs UNION ALL SELECT job FROM queue_done UNION ALL SELECT job FROM queue_dead
        ) AS everywhere) AS there
    WHERE sent.jobs <> there.jobs OR sent.ids <> there.ids;

-- No job is done twice.
SELECT format('job %s was done %s times', job, count(*))
    FROM queue_done GROUP BY job HAVING count(*) > 1 ORDER BY job LIMIT 5;

-- INTERSECT in place of a join: without statistics on the rows of the load, a join may read all of them for each job.
SELECT format('job %s is done and waits', job)
    FROM (SELECT job FROM queue_done INTERSECT SELECT id FROM queue_jobs) AS both_ways ORDER BY job LIMIT 5;

-- A job becomes a dead letter after its last attempt, and not before.
SELECT format('job %s is a dead letter after %s attempts instead of %s', job, attempts, :attempts)
    FROM queue_dead WHERE attempts <> :attempts ORDER BY job LIMIT 5;
