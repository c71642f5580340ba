-- Popular records lie scattered over all keys, as with YCSB's hashed keys.
\set records 10000 * :scale
\set number permute(random_zipfian(1, :records, :theta) - 1, :records) + 1
SELECT * FROM kv_records WHERE key = 'user' || :number;
