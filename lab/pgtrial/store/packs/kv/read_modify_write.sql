\set records 10000 * :scale
\set number permute(random_zipfian(1, :records, :theta) - 1, :records) + 1
\set seed random(1, 1000000000)
BEGIN;
SELECT * FROM kv_records WHERE key = 'user' || :number;
UPDATE kv_records SET field0 = left(repeat(md5(:seed || '/0'), 4), 100) WHERE key = 'user' || :number;
END;
