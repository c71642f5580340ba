-- The load reads alone: all vectors are still there.
SELECT format('%s vectors are there instead of %s', count(*), 10000 * :scale)
    FROM vector_items HAVING count(*) <> 10000 * :scale;
