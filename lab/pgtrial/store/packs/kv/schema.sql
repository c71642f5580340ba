-- Keys are compared byte by byte, as in the stores for which YCSB was made.
CREATE TABLE kv_records (
    key text COLLATE "C" PRIMARY KEY,
    field0 text NOT NULL,
    field1 text NOT NULL,
    field2 text NOT NULL,
    field3 text NOT NULL,
    field4 text NOT NULL,
    field5 text NOT NULL,
    field6 text NOT NULL,
    field7 text NOT NULL,
    field8 text NOT NULL,
    field9 text NOT NULL
);
-- The number of the newest record. The sequence gives out no number twice.
CREATE SEQUENCE kv_newest OWNED BY kv_records.key;
