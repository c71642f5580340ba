-- Queries and their results: rows, fields, NULLs, kinds of statements, counts.
sysbench.cmdline.options = {
   rows = {"rows of the table", 5}
}

local function show(name, ...)
   local values = {}
   for i = 1, select("#", ...) do
      values[i] = tostring((select(i, ...)))
   end
   print(name .. ": " .. table.concat(values, " | "))
end

local function show_result(name, rs)
   if rs == nil then
      show(name, "no result")
      return
   end
   show(name, tostring(rs), rs.nrows, rs.nfields)
   for i = 1, rs.nrows do
      local row = rs:fetch_row()
      local values = {}
      for f = 1, rs.nfields do
         values[f] = row[f] == nil and "NULL" or "[" .. row[f] .. "]"
      end
      show("  row " .. i, unpack(values, 1, rs.nfields))
   end
   show("  after the last", rs:fetch_row() == nil)
   show("  free", pcall(rs.free, rs))
end

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   show("driver", drv:name(), tostring(drv), tostring(con))
   con:query("CREATE TEMP TABLE t (n int PRIMARY KEY, v text, d float8, b bool, ba bytea, ts timestamp)")
   for i = 1, sysbench.opt.rows do
      con:query(string.format("INSERT INTO t VALUES (%d, 'v%d', %d.5, %s, '\\x00ff', '2020-01-02 03:04:05')", i, i, i, i % 2 == 0))
   end
   con:query("INSERT INTO t (n) VALUES (100)")
end

function event()
   show_result("all", con:query("SELECT * FROM t ORDER BY n"))
   show_result("none", con:query("SELECT * FROM t WHERE n < 0"))
   show_result("one", con:query("SELECT 1 AS a, NULL AS b, '' AS c, 'x y' AS d, 1.50::numeric AS e"))
   show_result("update", con:query("UPDATE t SET v = v WHERE n <= 3"))
   show_result("update of none", con:query("UPDATE t SET v = v WHERE n < 0"))
   show_result("update returning", con:query("UPDATE t SET v = 'w' WHERE n <= 2 RETURNING n, v"))
   show_result("insert", con:query("INSERT INTO t (n) VALUES (200), (201)"))
   show_result("insert returning", con:query("INSERT INTO t (n) VALUES (202) RETURNING n"))
   show_result("delete", con:query("DELETE FROM t WHERE n > 199"))
   show_result("delete of none", con:query("DELETE FROM t WHERE n > 199"))
   show_result("begin", con:query("BEGIN"))
   show_result("set", con:query("SET LOCAL work_mem = '1MB'"))
   show_result("show", con:query("SHOW work_mem"))
   show_result("explain", con:query("EXPLAIN (COSTS OFF) SELECT 1"))
   show_result("commit", con:query("COMMIT"))
   show_result("values", con:query("VALUES (1, 'a'), (2, 'b')"))
   show_result("with", con:query("WITH w AS (SELECT 1 AS x) SELECT x FROM w"))
   show_result("empty", con:query("SELECT 1 WHERE false"))
   show_result("several", con:query("SELECT 1; SELECT 2, 3"))
   show_result("several, the last without rows", con:query("SELECT 1; UPDATE t SET v = v WHERE n = 1"))
   show_result("create", con:query("CREATE TEMP TABLE u (x int)"))
   show_result("truncate", con:query("TRUNCATE u"))
   show_result("drop", con:query("DROP TABLE u"))
   show_result("do", con:query("DO $$ BEGIN NULL; END $$"))
   show_result("wide", con:query("SELECT repeat('x', 70)"))
   show_result("bytes", con:query("SELECT chr(228) || chr(8364)"))
   show("row", con:query_row("SELECT 1, NULL, 'c', NULL"))
   show("row's length", select("#", con:query_row("SELECT 1, NULL, 'c', NULL")))
   show("row of none", con:query_row("SELECT 1 WHERE false"))
   show("row of several", con:query_row("SELECT n FROM t ORDER BY n"))
   show("row of no rows", con:query_row("UPDATE t SET v = v WHERE n < 0"))
   show("types", type(con:query_row("SELECT 1")), type(con:query_row("SELECT true")), type(con:query("SELECT 1").nrows))
   show("errors", tonumber(con.error), con.sql_errno, con.sql_state == nil, con.sql_errmsg == nil)
end

function thread_done()
   show("disconnected", con:disconnect())
end
