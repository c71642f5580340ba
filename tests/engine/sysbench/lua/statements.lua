-- Prepared statements: parameters of every type, NULL, results, statements that are closed and prepared again.
local t = sysbench.sql.type

local function show(name, ...)
   local values = {}
   for i = 1, select("#", ...) do
      values[i] = tostring((select(i, ...)))
   end
   print(name .. ": " .. table.concat(values, " | "))
end

local function show_rows(name, rs)
   if rs == nil then
      show(name, "no result")
      return
   end
   show(name, rs.nrows, rs.nfields)
   for i = 1, rs.nrows do
      local row = rs:fetch_row()
      for f = 1, rs.nfields do
         row[f] = row[f] == nil and "NULL" or row[f]
      end
      show("  row", unpack(row, 1, rs.nfields))
   end
end

function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TEMP TABLE t (i bigint, s text, c char(5))")
end

function event()
   local insert = con:prepare("INSERT INTO t VALUES (?, ?, ?)")
   show("statement", tostring(insert))
   local i, d = insert:bind_create(t.BIGINT), insert:bind_create(t.FLOAT)
   local s, c = insert:bind_create(t.VARCHAR, 20), insert:bind_create(t.CHAR, 5)
   show("parameter", i.type, i.max_len, d.type, s.type, s.max_len, c.type)
   show("bound", insert:bind_param(i, s, c))
   for n = 1, 3 do
      i:set(n * 1000000007)
      s:set("s" .. n)
      c:set("toolong")
      show_rows("insert", insert:execute())
   end
   i:set(-5)
   s:set("it's \"quoted\" \\ and 100%")
   c:set("abcde")
   show_rows("insert of signs", insert:execute())
   show("closed", insert:close())
   show_rows("all", con:query("SELECT i, s, c, length(c) FROM t ORDER BY i NULLS FIRST"))

   local smaller = con:prepare("SELECT i FROM t WHERE i < ? AND s LIKE ? ORDER BY i")
   local below, like = smaller:bind_create(t.INT), smaller:bind_create(t.CHAR, 3)
   smaller:bind_param(below, like)
   below:set(2000000000)
   like:set("s%")
   show("select", smaller:execute().nrows)
   below:set(5000000000)
   show("select", smaller:execute().nrows)
   like:set("x%")
   show("select of none", smaller:execute().nrows)

   for _, kind in ipairs({"TINYINT", "SMALLINT", "INT", "BIGINT"}) do
      local stmt = con:prepare("SELECT 1 WHERE ? = 5")
      local param = stmt:bind_create(t[kind])
      stmt:bind_param(param)
      param:set(5)
      show(kind, param.type, stmt:execute().nrows)
      show(kind .. " from a string", pcall(param.set, param, "5"))
      param:set(6.7)
      show(kind .. " from a fraction", stmt:execute().nrows)
      stmt:close()
   end

   local drawn = con:prepare("SELECT length(?::text) AS l")
   local text = drawn:bind_create(t.VARCHAR, 30)
   drawn:bind_param(text)
   text:set_rand_str("###-@@@")
   show("a drawn string", drawn:execute().nrows)

   local without = con:prepare("UPDATE t SET s = s WHERE i > 0")
   show("no parameters", without:bind_param())
   show_rows("update", without:execute())
   show_rows("update", without:execute())
   local nothing = con:prepare("BEGIN")
   show_rows("begin", nothing:execute())
   show_rows("commit", con:prepare("COMMIT"):execute())
   show("types", t.NONE, t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.TIME, t.DATE, t.DATETIME, t.TIMESTAMP, t.CHAR, t.VARCHAR)
   show("a type that is none", pcall(without.bind_create, without, t.DATE))
   show("errors", sysbench.sql.error.NONE, sysbench.sql.error.IGNORABLE, sysbench.sql.error.FATAL)
end
