-- Prepared statements by the functions of C: buffers of the script's own are read at each execution.
local ffi = require("ffi")
local C, t = ffi.C, sysbench.sql.type

local function show(name, ...)
   local values = {}
   for i = 1, select("#", ...) do
      values[i] = tostring((select(i, ...)))
   end
   print(name .. ": " .. table.concat(values, " | "))
end

function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TEMP TABLE t (a bigint, b int, c smallint, d text)")
end

local function prepare(text)
   return C.db_prepare(con, text, #text)
end

function event()
   local insert = prepare("INSERT INTO t VALUES (?, ?, ?, ?)")
   show("statement", tostring(insert), type(insert), insert.connection == con)
   local big, int, small = ffi.new("int64_t[1]"), ffi.new("int32_t[1]"), ffi.new("int16_t[1]")
   local text, length = ffi.new("char[20]"), ffi.new("unsigned long[1]")
   local binds = ffi.new("sql_bind[4]")
   binds[0].type, binds[0].buffer = t.BIGINT, big
   binds[1].type, binds[1].buffer = t.INT, int
   binds[2].type, binds[2].buffer = t.SMALLINT, small
   binds[3].type, binds[3].buffer, binds[3].data_len, binds[3].max_len = t.VARCHAR, text, length, 20
   show("too few", C.db_bind_param(insert, binds, 3))
   show("bound", C.db_bind_param(insert, binds, 4))
   for i = 1, 3 do
      big[0], int[0], small[0], length[0] = 9007199254740993LL * i, -i, i, i
      ffi.copy(text, string.rep("x", i))
      show("execute", C.db_execute(insert) == nil, tonumber(con.error))
   end
   show("close", C.db_close(insert))
   local rs = con:query("SELECT * FROM t ORDER BY c")
   for _ = 1, rs.nrows do
      show("row", unpack(rs:fetch_row(), 1, rs.nfields))
   end
   local select_ = prepare("SELECT count(*)::int FROM t WHERE b > ?")
   local one = ffi.new("sql_bind[1]")
   one[0].type, one[0].buffer = t.INT, int
   show("bound", C.db_bind_param(select_, one, 1), C.db_bind_result(select_, one, 1))
   for bound = -4, 0 do
      int[0] = bound
      rs = C.db_execute(select_)
      show("selected", rs.nrows, rs.nfields, rs.statement == select_, tonumber(rs.counter))
   end
   show("failed", prepare("SELECT nosuch") == nil, tonumber(con.error))
   local param = con:prepare("SELECT 1 WHERE ? = 5")
   local value = param:bind_create(t.INT)
   show("parameter", type(value), tostring(value), value.type, value.max_len, ffi.sizeof(value.buffer), value.is_null[0])
   param:bind_param(value)
   value.buffer[0] = 5
   show("a buffer that was written", param:execute().nrows)
   value:set(6)
   show("a buffer that was set", tostring(value.buffer[0]), param:execute().nrows)
end
