-- A vector is the centre of its cluster plus some noise.
INSERT INTO vector_items
    SELECT i, i / :clusters % :categories,
        array_agg(vector_noise('centre', i % :clusters, d) + vector_noise('item', i, d) ORDER BY d)::real[]::vector
    FROM generate_series(1, 10000 * :scale) AS i, generate_series(1, :dimensions) AS d GROUP BY i;

-- The vectors to search for are distributed like the stored ones, but are none of them.
INSERT INTO vector_queries
    SELECT i, i / :clusters % :categories,
        array_agg(vector_noise('centre', i % :clusters, d) + vector_noise('query', i, d) ORDER BY d)::real[]::vector
    FROM generate_series(1, 1000) AS i, generate_series(1, :dimensions) AS d GROUP BY i;

CREATE INDEX vector_items_hnsw ON vector_items USING hnsw (embedding vector_l2_ops);
