-- Queries from coroutines of the script's own, and within pcall, metamethods and iterators.
sysbench.cmdline.options = {}

function thread_init()
   con = sysbench.sql.driver():connect()
   other = sysbench.sql.driver():connect()
end

function event()
   local producer = coroutine.create(function(first)
      local got = first
      for i = 1, 3 do
         local value = con:query_row("SELECT " .. i .. " * 10")
         got = coroutine.yield(value, got)
      end
      return "over"
   end)
   for i = 1, 5 do
      print("resume", coroutine.resume(producer, "sent " .. i))
      print("status", coroutine.status(producer))
   end

   local wrapped = coroutine.wrap(function()
      local inner = coroutine.wrap(function()
         coroutine.yield(con:query_row("SELECT 'inner 1'"))
         coroutine.yield(other:query_row("SELECT 'inner 2'"))
      end)
      coroutine.yield(inner())
      coroutine.yield(con:query_row("SELECT 'between'"))
      coroutine.yield(inner())
   end)
   print("wrapped", wrapped(), wrapped(), wrapped())

   local failing = coroutine.create(function() con:query("SELECT 1 / 0") end)
   local ok, message = coroutine.resume(failing)
   print("failing", ok, type(message), coroutine.status(failing))

   local ok, message = pcall(function()
      return pcall(con.query, con, "SELECT nosuch")
   end)
   print("pcall", ok, message)
   print("after it", con:query_row("SELECT 'still here'"))
   print("xpcall", xpcall(function() return con:query_row("SELECT 'in xpcall'") end, debug.traceback))

   local counter = setmetatable({}, {
      __index = function(_, key) return con:query_row("SELECT 'index " .. key .. "'") end,
      __call = function(_, a) return con:query_row("SELECT 'call " .. a .. "'") end,
      __add = function(_, b) return con:query_row("SELECT 40 + " .. b) end,
      __concat = function() return con:query_row("SELECT 'concat'") end,
      __lt = function() return con:query_row("SELECT 1") ~= nil end
   })
   print("metamethods", counter.key, counter("x"), counter + 2, counter .. "", counter < counter)

   local function rows(query)
      local rs = con:query(query)
      return function()
         local row = rs:fetch_row()
         return row and row[1] .. "/" .. con:query_row("SELECT 'each'")
      end
   end
   for value in rows("SELECT generate_series(1, 3)") do
      print("iterator", value)
   end

end
