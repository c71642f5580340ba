-- The newest records are the most popular ones.
\set records 10000 * :scale
\set back random_zipfian(1, :records, :theta) - 1
SELECT * FROM kv_records WHERE key = 'user' || (SELECT last_value - :back FROM kv_newest);
