-- The popular records are scattered over all keys, as by the hashed keys of YCSB.
\set records 10000 * :scale
\set number permute(random_zipfian(1, :records, :theta) - 1, :records) + 1
SELECT * FROM kv_records WHERE key = 'user' || :number;
