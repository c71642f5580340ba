-- Fails at the place that --at names, in the way that --how names.
sysbench.cmdline.options = {
   at = {"where to fail", "event"},
   how = {"how to fail", "error"}
}

local WAYS = {}

function WAYS.error() error("a message") end

function WAYS.level() error("a message of level 2", 2) end

function WAYS.bare() error("a message without a place", 0) end

function WAYS.object() error({ code = 5 }) end

function WAYS.none() error() end

function WAYS.number() error(42) end

function WAYS.assertion() assert(false, "an assertion") end

function WAYS.assertion_bare() assert(nil) end

function WAYS.call()
   nosuch_function()
end

function WAYS.field()
   local missing
   return missing.field
end

function WAYS.method()
   local con = sysbench.sql.driver():connect()
   con:nosuch()
end

function WAYS.arithmetic()
   return 1 + {}
end

function WAYS.compare()
   return 1 < "x"
end

function WAYS.nested()
   local ok, message = pcall(WAYS.error)
   error("outer: " .. tostring(ok) .. " " .. message, 0)
end

function WAYS.sql()
   local con = sysbench.sql.driver():connect()
   con:query("SELECT nosuch FROM nowhere")
end

function WAYS.syntax_of_sql()
   sysbench.sql.driver():connect():query("SELEC 1")
end

function WAYS.division()
   local con = sysbench.sql.driver():connect()
   con:query("SELECT 1")
   con:query("SELECT 1 / 0")
end

function WAYS.row()
   sysbench.sql.driver():connect():query_row("SELECT 1 / 0")
end

function WAYS.prepare()
   sysbench.sql.driver():connect():prepare("SELECT nosuch FROM nowhere")
end

function WAYS.execute()
   local con = sysbench.sql.driver():connect()
   local stmt = con:prepare("SELECT 1 / (length(current_user) - length(current_user))")
   stmt:execute()
end

function WAYS.bulk()
   local con = sysbench.sql.driver():connect()
   con:bulk_insert_init("INSERT INTO nowhere VALUES")
   con:bulk_insert_next("(1)")
   con:bulk_insert_done()
end

function WAYS.raised()
   sysbench.sql.driver():connect():query("DO $$ BEGIN RAISE EXCEPTION 'raised here' USING ERRCODE = 'P0042', DETAIL = 'a detail', HINT = 'a hint'; END $$")
end

function WAYS.killed()
   local con = sysbench.sql.driver():connect()
   con:query("SELECT pg_terminate_backend(pg_backend_pid())")
end

function WAYS.driver() sysbench.sql.driver("nosuch") end

function WAYS.disconnected()
   local con = sysbench.sql.driver():connect()
   con:disconnect()
   con:query("SELECT 1")
end

function WAYS.stack()
   local function deeper() return 1 + deeper() end
   deeper()
end

function WAYS.module()
   require("nosuch_module")
end

function WAYS.exit() os.exit(3) end

function WAYS.random() sysbench.rand.string(nil) end

local function fail(place)
   if sysbench.opt and sysbench.opt.at == place then
      WAYS[sysbench.opt.how]()
   end
end

function init() fail("init") end
function thread_init() fail("thread_init") end
function event() fail("event") end
function thread_done() fail("thread_done") end
function done() fail("done") end
function prepare() fail("prepare") end
function cleanup() fail("cleanup") end
function help() fail("help") end

sysbench.cmdline.commands = {
   own = {function() fail("own") end},
   parallel = {function() fail("parallel") end, sysbench.cmdline.PARALLEL_COMMAND},
   untrue = {function() return false end},
   value = {function() return 5 end}
}

function sysbench.hooks.report_cumulative(stat)
   fail("report_cumulative")
   sysbench.report_default(stat)
end
