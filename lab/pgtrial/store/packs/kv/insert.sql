\set seed random(1, 1000000000)
INSERT INTO kv_records SELECT
    'user' || nextval('kv_newest'),
    left(repeat(md5(:seed || '/0'), 4), 100),
    left(repeat(md5(:seed || '/1'), 4), 100),
    left(repeat(md5(:seed || '/2'), 4), 100),
    left(repeat(md5(:seed || '/3'), 4), 100),
    left(repeat(md5(:seed || '/4'), 4), 100),
    left(repeat(md5(:seed || '/5'), 4), 100),
    left(repeat(md5(:seed || '/6'), 4), 100),
    left(repeat(md5(:seed || '/7'), 4), 100),
    left(repeat(md5(:seed || '/8'), 4), 100),
    left(repeat(md5(:seed || '/9'), 4), 100);
