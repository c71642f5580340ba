\set query random(1, 1000)
SELECT id FROM vector_items ORDER BY embedding <-> (SELECT embedding FROM vector_queries WHERE id = :query) LIMIT 10;
