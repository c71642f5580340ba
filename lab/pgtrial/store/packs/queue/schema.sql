CREATE TABLE queue_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    attempts int NOT NULL DEFAULT 0,
    poison boolean NOT NULL,
    payload text NOT NULL
);
-- No unique index on job: what is done twice is to be seen, not prevented.
CREATE TABLE queue_done (job bigint NOT NULL, finished timestamptz NOT NULL DEFAULT now());
CREATE TABLE queue_dead (job bigint NOT NULL, attempts int NOT NULL, buried timestamptz NOT NULL DEFAULT now());
-- One row for each batch: check.sql compares them with the jobs that are there.
CREATE TABLE queue_sent (jobs bigint NOT NULL, ids numeric NOT NULL);
