\set records 10000 * :scale
\set number permute(random_zipfian(1, :records, :theta) - 1, :records) + 1
\set length random(1, 100)
SELECT * FROM kv_records WHERE key >= 'user' || :number ORDER BY key LIMIT :length;
