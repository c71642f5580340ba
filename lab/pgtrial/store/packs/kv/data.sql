INSERT INTO kv_records SELECT
    'user' || i,
    left(repeat(md5(i || '/0'), 4), 100),
    left(repeat(md5(i || '/1'), 4), 100),
    left(repeat(md5(i || '/2'), 4), 100),
    left(repeat(md5(i || '/3'), 4), 100),
    left(repeat(md5(i || '/4'), 4), 100),
    left(repeat(md5(i || '/5'), 4), 100),
    left(repeat(md5(i || '/6'), 4), 100),
    left(repeat(md5(i || '/7'), 4), 100),
    left(repeat(md5(i || '/8'), 4), 100),
    left(repeat(md5(i || '/9'), 4), 100)
FROM generate_series(1, 10000 * :scale) AS i;
SELECT setval('kv_newest', 10000 * :scale);
