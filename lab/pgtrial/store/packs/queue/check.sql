-- Nothing is lost: what was sent waits, is done, or is dead. Each row is a failure.
SELECT format('jobs were lost or made up: %s were sent, and %s wait, are done or are dead', sent.jobs, there.jobs)
    FROM (SELECT sum(jobs) AS jobs, sum(ids) AS ids FROM queue_sent) AS sent,
        (SELECT count(*) AS jobs, sum(id) AS ids FROM (
            SELECT id FROM queue_jobs UNION ALL SELECT job FROM queue_done UNION ALL SELECT job FROM queue_dead
        ) AS everywhere) AS there
    WHERE sent.jobs <> there.jobs OR sent.ids <> there.ids;

-- Nothing is done twice.
SELECT format('job %s was done %s times', job, count(*))
    FROM queue_done GROUP BY job HAVING count(*) > 1 ORDER BY job LIMIT 5;

-- INTERSECT and no join: there are no statistics on what the load has written, and a join may read all of it for each job.
SELECT format('job %s is done and waits', job)
    FROM (SELECT job FROM queue_done INTERSECT SELECT id FROM queue_jobs) AS both_ways ORDER BY job LIMIT 5;

-- A job is a dead letter after its last attempt, and not before.
SELECT format('job %s is a dead letter after %s attempts instead of %s', job, attempts, :attempts)
    FROM queue_dead WHERE attempts <> :attempts ORDER BY job LIMIT 5;
