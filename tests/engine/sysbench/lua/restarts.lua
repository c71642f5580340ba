-- Events that meet an error that can be ignored begin again; what counts as such, and what the hooks are told.
sysbench.cmdline.options = {
   state = {"SQLSTATE to raise", "40001"},
   times = {"how often in a row", 2},
   ignore = {"whether the script calls it ignorable", false},
   catch = {"whether the script catches the error", false},
   prepared = {"whether it comes from a prepared statement", false}
}

local function show(descriptor)
   print("  restart", descriptor.sql_state, descriptor.sql_errno, descriptor.sql_errmsg, descriptor.query,
         descriptor.errcode == sysbench.error.RESTART_EVENT, tostring(descriptor.connection))
end

function thread_init()
   con = sysbench.sql.driver():connect()
   con:query("CREATE SEQUENCE IF NOT EXISTS turns")
   con:query("CREATE OR REPLACE FUNCTION mishap(state text, times int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
      .. " IF nextval('turns') % (times + 1) <> 0 THEN RAISE EXCEPTION 'a mishap' USING ERRCODE = state; END IF; RETURN 1; END $$")
   text = string.format("SELECT mishap('%s', %d)", sysbench.opt.state, sysbench.opt.times)
   stmt = con:prepare(text)
end

local number = 0

function event()
   number = number + 1
   print("event, try " .. number)
   con:query("BEGIN")
   local function mishap()
      if sysbench.opt.prepared then
         return stmt:execute()
      end
      return con:query(text)
   end
   if sysbench.opt.catch then
      local ok, message = pcall(mishap)
      print("caught", ok, ok or (type(message) == "table" and message.sql_state or message))
      con:query("ROLLBACK")
      return
   end
   mishap()
   con:query("COMMIT")
end

function sysbench.hooks.sql_error_ignorable(descriptor)
   print("  ignorable?", descriptor.sql_state, descriptor.sql_errno, descriptor.sql_errmsg, descriptor.query)
   return sysbench.opt.ignore
end

function sysbench.hooks.before_restart_event(descriptor)
   show(descriptor)
   con:query("ROLLBACK")
end
