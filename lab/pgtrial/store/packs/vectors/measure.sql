-- Recall: the share of the ten true neighbours that a search finds, over 100 queries. The true neighbours come from a
-- scan of all vectors; the search is planned as in the load, with the settings of the arm.
CREATE TEMP TABLE searches AS SELECT id, category, embedding FROM vector_queries WHERE id <= 100;
ANALYZE searches;

SET enable_indexscan = off;
CREATE TEMP TABLE nearest AS
    SELECT searches.id AS search, found.id AS item FROM searches, LATERAL (
        SELECT id FROM vector_items WHERE :'mix' = 'nearest' OR vector_items.category = searches.category
            ORDER BY vector_items.embedding <-> searches.embedding LIMIT 10
    ) AS found;
RESET enable_indexscan;

CREATE TEMP TABLE found AS
    SELECT searches.id AS search, found.id AS item FROM searches, LATERAL (
        SELECT id FROM vector_items WHERE :'mix' = 'nearest' OR vector_items.category = searches.category
            ORDER BY vector_items.embedding <-> searches.embedding LIMIT 10
    ) AS found;

SELECT count(found.item)::float8 / count(*) FROM nearest LEFT JOIN found USING (search, item);
