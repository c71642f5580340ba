-- Queries of the main thread: at the top level, in init, in done and in the hook of the whole report.
local driver = sysbench.sql.driver()
local top = driver:connect()
print("top", top:query_row("SELECT 1 + 1"))

function init()
   con = driver:connect()
   for i = 1, 10 do
      con:query("SELECT 1")
   end
   statement = con:prepare("SELECT ?::int + 1")
   value = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(value)
   value:set(41)
   print("init", con:query_row("SELECT 2 + 1"), statement:execute().nrows)
   print("failed", pcall(con.query, con, "SELECT * FROM nowhere"))
end

function thread_init()
   own = driver:connect()
end

function event()
   own:query("SELECT 1")
end

function sysbench.hooks.report_cumulative(stat)
   print("reads", stat.reads, "other", stat.other, "errors", stat.errors)
   print("cumulative", con:query_row("SELECT 3 + 1"))
end

function done()
   print("done", con:query_row("SELECT 4 + 1"), top:query_row("SELECT 6"))
   con:disconnect()
   print("closed", (pcall(con.query, con, "SELECT 1")))
end
