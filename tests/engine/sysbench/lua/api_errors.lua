-- Errors of the SQL interface that the server does not report.
sysbench.cmdline.options = {how = {"what to do", "empty"}, caught = {"whether the script catches it", false}}

local WAYS = {}

function WAYS.empty(con)
   con:query("")
end

function WAYS.blank(con)
   con:query(" -- nothing\n")
end

function WAYS.copy_in(con)
   con:query("CREATE TEMP TABLE c (n int)")
   con:query("COPY c FROM STDIN")
end

function WAYS.copy_out(con)
   con:query("COPY (SELECT 1) TO STDOUT")
end

function WAYS.of_row(con)
   con:query_row("")
end

function WAYS.closed(con)
   con:disconnect()
   con:query("SELECT 1")
end

function WAYS.reported(con)
   pcall(con.query, con, "SELECT nosuch")
   con:query("")
end

function event()
   local con = sysbench.sql.driver():connect()
   local function act()
      WAYS[sysbench.opt.how](con)
   end
   if not sysbench.opt.caught then
      return act()
   end
   print("caught", pcall(act))
   print("con", tonumber(con.error), con.sql_errno, con.sql_state == nil, con.sql_errmsg == nil)
   print("then", pcall(con.query_row, con, "SELECT 2"))
end
