-- Counts for itself, by the functions of C.
local ffi = require("ffi")
ffi.cdef [[
void sb_counter_inc(int, sb_counter_type);
uint64_t sb_counter_val(int, sb_counter_type);
extern int sb_tls_thread_id;
]]

sysbench.cmdline.options = {database = {"whether to use the database", false}}

function thread_init()
   if sysbench.opt.database then
      con = sysbench.sql.driver():connect()
   end
end

local names = {"SB_CNT_OTHER", "SB_CNT_READ", "SB_CNT_WRITE", "SB_CNT_TRX", "SB_CNT_ERROR", "SB_CNT_RECONNECT"}

function event(id)
   if con then
      con:query("SELECT 1")
      con:query("BEGIN")
      pcall(con.query, con, "SELECT 1 / 0")
      con:query("ROLLBACK")
   end
   for i, name in ipairs(names) do
      for _ = 1, i do
         ffi.C.sb_counter_inc(id, i % 2 == 0 and name or ffi.C[name])
      end
   end
   local values = {}
   for i, name in ipairs(names) do
      values[i] = tostring(ffi.C.sb_counter_val(id, ffi.C[name]))
   end
   print("counters", table.concat(values, " "))
   print("thread", ffi.C.sb_tls_thread_id == sysbench.tid, ffi.C.sb_tls_thread_id == id)
   print("no counter", (pcall(ffi.C.sb_counter_inc, id, "SB_CNT_NONE")))
end
