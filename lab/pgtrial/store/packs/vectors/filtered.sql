\set query random(1, 1000)
SELECT id FROM vector_items WHERE category = (SELECT category FROM vector_queries WHERE id = :query)
    ORDER BY embedding <-> (SELECT embedding FROM vector_queries WHERE id = :query) LIMIT 10;
