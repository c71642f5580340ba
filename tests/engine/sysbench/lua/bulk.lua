-- Bulk inserts: of nothing, of one row, of more than fit into one statement, two connections at a time.
sysbench.cmdline.options = { rows = {"rows to insert", 30000} }

function event()
   local con = sysbench.sql.driver():connect()
   con:query("DROP TABLE IF EXISTS bulk; CREATE TABLE bulk (n int, v text)")
   con:bulk_insert_init("INSERT INTO bulk (n, v) VALUES")
   print("none", con:bulk_insert_done())
   con:bulk_insert_init("INSERT INTO bulk (n, v) VALUES")
   print("one", con:bulk_insert_next("(0, 'x')"), con:bulk_insert_done())
   print("rows", con:query_row("SELECT count(*), sum(n) FROM bulk"))
   con:bulk_insert_init("INSERT INTO bulk (n, v) VALUES ")
   for i = 1, sysbench.opt.rows do
      con:bulk_insert_next("(" .. i .. ",'" .. string.rep("y", i % 50) .. "')")
   end
   con:bulk_insert_done()
   print("rows", con:query_row("SELECT count(*), sum(n), sum(length(v)) FROM bulk"))
   local other = sysbench.sql.driver():connect()
   con:bulk_insert_init("INSERT INTO bulk VALUES")
   other:bulk_insert_init("INSERT INTO bulk VALUES")
   for i = 1, 10 do
      con:bulk_insert_next("(1, NULL)")
      other:bulk_insert_next("(2, NULL)")
   end
   other:bulk_insert_done()
   con:bulk_insert_done()
   print("rows", con:query_row("SELECT count(*), sum(n) FROM bulk WHERE v IS NULL"))
   con:bulk_insert_init("INSERT INTO bulk VALUES")
   con:bulk_insert_next("(1, 'a'), (2, 'b')")
   con:bulk_insert_done()
   print("rows", con:query_row("SELECT count(*) FROM bulk WHERE v IN ('a', 'b')"))
end
