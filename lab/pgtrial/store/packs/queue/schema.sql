CREATE TABLE queue_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempts int NOT NULL DEFAULT 0,
    poison boolean NOT NULL,
    payload text NOT NULL
);
-- No unique index on job: if a job is done twice, check.sql must find that.
CREATE TABLE queue_done (job bigint NOT NULL, finished timestamptz NOT NULL DEFAULT now());
CREATE TABLE queue_dead (job bigint NOT NULL, attempts int NOT NULL, buried timestamptz NOT NULL DEFAULT now());
-- One row for each batch that was sent: check.sql compares these rows with the jobs in the other tables.
CREATE TABLE queue_sent (jobs bigint NOT NULL, ids numeric NOT NULL);
