-- The load only reads, so all vectors must still be there.
SELECT format('%s vectors are there instead of %s', count(*), 10000 * :scale)
    FROM vector_items HAVING count(*) <> 10000 * :scale;
