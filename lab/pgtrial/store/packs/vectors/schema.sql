CREATE TABLE vector_items (
    id int PRIMARY KEY,
    category int NOT NULL,
    embedding vector(:dimensions) NOT NULL
);
CREATE TABLE vector_queries (
    id int PRIMARY KEY,
    category int NOT NULL,
    embedding vector(:dimensions) NOT NULL
);

-- Returns a number from -0.5 to 0.5 that looks random but is the same on every server and in every version.
CREATE OR REPLACE FUNCTION vector_noise(what text, i int, d int) RETURNS float8 LANGUAGE sql IMMUTABLE
    AS $$ SELECT ('x' || substr(md5(what || i || '/' || d), 1, 8))::bit(32)::int / 4294967296::float8 $$;
