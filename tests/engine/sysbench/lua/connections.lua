-- Several connections in one client, also closed, forgotten and made again.
sysbench.cmdline.options = { queries = {"queries on connections of their own", 20} }

function thread_init()
   drv = sysbench.sql.driver()
   one, two, three = drv:connect(), drv:connect(), sysbench.sql.driver("pgsql"):connect()
end

function event()
   for i, con in ipairs({one, two, three}) do
      con:query("SET application_name = 'con" .. i .. "'")
   end
   print("names", one:query_row("SHOW application_name"), two:query_row("SHOW application_name"), three:query_row("SHOW application_name"))
   local pids = {}
   for _, con in ipairs({one, two, three}) do pids[con:query_row("SELECT pg_backend_pid()")] = true end
   local count = 0
   for _ in pairs(pids) do count = count + 1 end
   print("backends", count)
   one:query("CREATE TABLE IF NOT EXISTS across (n int)")
   one:query("BEGIN")
   one:query("INSERT INTO across VALUES (1)")
   print("not yet", two:query_row("SELECT count(*) FROM across"))
   one:query("COMMIT")
   print("now", two:query_row("SELECT count(*) FROM across"))
   print("reconnect", pcall(two.reconnect, two))
   print("disconnect", pcall(two.disconnect, two))
   print("reconnect", pcall(two.reconnect, two))
   print("again", pcall(two.query_row, two, "SELECT 'two again'"))
   two = drv:connect()
   print("two again", two:query_row("SELECT 2"))
   three:disconnect()
   three = drv:connect()
   print("three again", three:query_row("SELECT 3"))
   for i = 1, sysbench.opt.queries do
      local con = drv:connect()
      con:query("SELECT " .. i)
      con:disconnect()
   end
   one:query("DROP TABLE across")
end

function thread_done()
   one:disconnect()
end
