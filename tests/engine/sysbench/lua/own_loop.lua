-- A loop of events of the script's own.
local ffi = require("ffi")
pcall(ffi.cdef, [[
void sb_event_start(int thread_id);
void sb_event_stop(int thread_id);
bool sb_more_events(int thread_id);
]])

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query("SELECT 1")
end

function thread_run(id)
   print("thread_run", id)
   local count = 0
   while ffi.C.sb_more_events(id) do
      ffi.C.sb_event_start(id)
      event(id)
      ffi.C.sb_event_stop(id)
      count = count + 1
   end
   print("events", count)
end

function thread_done()
   print("thread_done")
end
