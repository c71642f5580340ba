-- The SQL interface by the functions of C alone.
local ffi = require("ffi")
local C = ffi.C

local function show(name, ...)
   local values = {}
   for i = 1, select("#", ...) do
      values[i] = tostring((select(i, ...)))
   end
   print(name .. ": " .. table.concat(values, " | "))
end

local function query(con, text)
   local rs = C.db_query(con, text, #text)
   show(text, rs == nil, tonumber(con.error), con.sql_errno, con.sql_state == nil or ffi.string(con.sql_state),
        con.sql_errmsg == nil or ffi.string(con.sql_errmsg))
   return rs
end

local function show_rows(rs)
   show("result", tonumber(rs.counter), rs.nrows, rs.nfields, tostring(rs), rs.statement == nil)
   for _ = 1, rs.nrows do
      local row, values = C.db_fetch_row(rs), {}
      for i = 0, rs.nfields - 1 do
         local value = row.values[i]
         values[i + 1] = value.ptr == nil and "NULL" or "[" .. ffi.string(value.ptr, value.len) .. "]"
      end
      show("row", unpack(values))
   end
   show("free", C.db_free_results(rs), rs.nrows, rs.nfields)
   show("free again", C.db_free_results(rs))
   show("fetch", C.db_fetch_row(rs) == nil)
end

function event()
   local driver = C.db_create(nil)
   show("driver", ffi.string(driver.sname), ffi.string(driver.lname), tostring(driver), type(driver))
   show("no driver", C.db_create("nosuch") == nil)
   local con = C.db_connection_create(driver)
   show("connection", tostring(con), type(con), con.driver == driver, tonumber(con.error), con.sql_state == nil)
   show("methods", con.driver:name(), con:query_row("SELECT 'a method'"))
   show_rows(query(con, "SELECT 1 AS a, NULL, '', 'x y' UNION ALL SELECT 2, 'b', 'c', NULL ORDER BY a"))
   show_rows(query(con, "SELECT 1 WHERE false"))
   query(con, "CREATE TEMP TABLE t (n int, v text)")
   show("bulk", C.db_bulk_insert_next(con, "(0)", 3))
   show("bulk", C.db_bulk_insert_init(con, "INSERT INTO t VALUES", 20))
   show("bulk", C.db_bulk_insert_next(con, "(1, 'a')", 8), C.db_bulk_insert_next(con, "(2, 'b')", 8))
   show("bulk", C.db_bulk_insert_done(con))
   query(con, "UPDATE t SET v = v")
   query(con, "SELECT nosuch")
   query(con, "SELECT count(*) FROM t")
   query(con, "BEGIN")
   query(con, "SELECT 1 / 0")
   query(con, "ROLLBACK")
   show("bulk of nowhere", C.db_bulk_insert_init(con, "INSERT INTO nowhere VALUES", 26),
        C.db_bulk_insert_next(con, "(1)", 3), C.db_bulk_insert_done(con))
   show("wrong", pcall(C.db_query, con) == false, pcall(C.db_query, 5, "x", 1) == false)
   show("close", C.db_connection_close(con))
   show("closed", query(con, "SELECT 1") == nil)
   show("close again", C.db_connection_close(con))
   C.db_connection_free(con)
   show("destroy", C.db_destroy(driver))
end
