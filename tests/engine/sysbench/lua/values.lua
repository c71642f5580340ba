-- What a script is told of itself, of its options and of its place.
sysbench.cmdline.options = {
   a_number = {"a number", 3},
   a_fraction = {"a fraction", 0.25},
   a_word = {"a word", "word"},
   a_switch = {"a switch", true},
   a_list = {"a list", {"x", "y"}},
   an_int = {"an integer", 7, sysbench.cmdline.ARG_INT},
   a_size = {"a size", "16K", sysbench.cmdline.ARG_SIZE},
   a_bool = {"a flag", "off", sysbench.cmdline.ARG_BOOL},
   a_double = {"a double", 1, sysbench.cmdline.ARG_DOUBLE},
   a_string = {"a string", 5, sysbench.cmdline.ARG_STRING},
   nothing = {"nothing"}
}

local function show(name, value)
   if type(value) == "table" then
      value = "{" .. table.concat(value, ", ") .. "}"
   end
   print(name, type(value), tostring(value))
end

local function show_all(where)
   print("-- " .. where)
   show("tid", sysbench.tid)
   show("thread_id", thread_id)
   show("test", test)
   show("script_path", sysbench.cmdline.script_path)
   show("command", sysbench.cmdline.command)
   show("version", sysbench.version)
   show("version_string", sysbench.version_string)
   show("RESTART_EVENT", sysbench.error.RESTART_EVENT)
   show("PARALLEL_COMMAND", sysbench.cmdline.PARALLEL_COMMAND)
   -- the words from the script's name on
   local words, found = {}, false
   for _, word in ipairs(sysbench.cmdline.argv) do
      found = found or word:find("values", 1, true) ~= nil
      words[#words + 1] = found and word or nil
   end
   show("argv", words)
   show("opt", type(sysbench.opt))
end

show_all("top level")

local OPTIONS = {"a_number", "a_fraction", "a_word", "a_switch", "a_list", "an_int", "a_size", "a_bool", "a_double", "a_string", "nothing",
   "threads", "events", "time", "rate", "report_interval", "report_checkpoints", "forced_shutdown", "thread_stack_size", "debug", "validate",
   "verbosity", "percentile", "histogram", "rand_type", "rand_spec_iter", "rand_spec_pct", "rand_spec_res", "rand_seed", "rand_pareto_h",
   "db_driver", "db_ps_mode", "db_debug", "pgsql_password", "help", "version", "config_file", "tx_rate", "max_requests", "max_time", "num_threads"}

local function show_options()
   for _, name in ipairs(OPTIONS) do
      show(name, sysbench.opt[name])
   end
   show("unknown", sysbench.opt.unknown)
   show("a global", a_number)
end

function init()
   show_all("init")
   show_options()
end

function thread_init(id)
   print("thread_init", id)
   show_all("thread_init")
end

function event(id)
   print("event", id)
   show_options()
   local names = {}
   for name in pairs(_G) do
      names[#names + 1] = tostring(name)
   end
   table.sort(names)
   print("globals", table.concat(names, " "))
   for _, library in ipairs({"sysbench", "sysbench.cmdline", "sysbench.rand", "sysbench.sql", "sysbench.error", "sysbench.hooks", "sysbench.db"}) do
      local found = _G
      for part in library:gmatch("%w+") do
         found = found[part]
      end
      names = {}
      for name in pairs(found or {}) do
         names[#names + 1] = tostring(name)
      end
      table.sort(names)
      print(library, table.concat(names, " "))
   end
   return 1
end

function thread_done(id)
   print("thread_done", id)
   show_all("thread_done")
end

function done()
   show_all("done")
end

function prepare()
   show_all("prepare")
   show_options()
end

function cleanup()
   show_all("cleanup")
end

function help()
   print("this script's own help")
   show_all("help")
   sysbench.cmdline.print_test_options()
end
