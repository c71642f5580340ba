-- No record is lost: each number that the sequence gave out has a record, unless its insert failed.
SELECT format('%s records are there, and %s were loaded', count(*), 10000 * :scale)
    FROM kv_records HAVING count(*) < 10000 * :scale;

SELECT format('%s records are there, and only %s numbers were given', count(*), (SELECT last_value FROM kv_newest))
    FROM kv_records HAVING count(*) > (SELECT last_value FROM kv_newest);

SELECT format('the record %s has a field of %s bytes', key, length(field0))
    FROM kv_records WHERE length(field0) <> 100 ORDER BY key LIMIT 5;
