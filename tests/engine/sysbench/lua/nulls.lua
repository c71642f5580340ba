-- Parameters that are fractions, and parameters that are NULL after they were something else.
sysbench.cmdline.options = {}

function event()
   local t = sysbench.sql.type
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TEMP TABLE t (i bigint, d float8, s text)")
   local insert = con:prepare("INSERT INTO t VALUES (?, ?, ?)")
   local i, d, s = insert:bind_create(t.INT), insert:bind_create(t.DOUBLE), insert:bind_create(t.CHAR, 5)
   insert:bind_param(i, d, s)
   i:set(5)
   d:set(0.5)
   s:set("five")
   insert:execute()
   i:set(nil)
   d:set(nil)
   s:set(nil)
   insert:execute()
   print("NULLs", con:query_row("SELECT count(*) - count(i), count(*) - count(d), count(*) - count(s) FROM t"))
   print("sum", con:query_row("SELECT sum(d) FROM t"))
end
