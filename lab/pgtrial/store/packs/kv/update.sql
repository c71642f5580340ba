-- Changes one field of a record. Which field makes no difference to PostgreSQL: it writes the whole row.
\set records 10000 * :scale
\set number permute(random_zipfian(1, :records, :theta) - 1, :records) + 1
\set seed random(1, 1000000000)
UPDATE kv_records SET field0 = left(repeat(md5(:seed || '/0'), 4), 100) WHERE key = 'user' || :number;
