-- Reports of a script's own in each format.
sysbench.cmdline.options = { format = {"csv, json, default, own or none", "csv"} }

-- An event may be counted while its queries are not.
local function rounded(ratio)
   return math.floor(ratio + 0.5)
end

local function own(stat)
   local names = {}
   for name, value in pairs(stat) do
      names[#names + 1] = name .. ":" .. type(value)
   end
   table.sort(names)
   print("own report " .. table.concat(names, " "))
   print("own threads", stat.threads_running)
   print("own ratio", rounded(stat.reads / stat.events), rounded(stat.other / stat.events), stat.writes, stat.errors, stat.reconnects)
   print("own times", stat.time_interval > 0, stat.time_total > 0, stat.latency_pct > 0)
   if stat.latency_min then
      print("own latency", stat.latency_min <= stat.latency_avg, stat.latency_avg <= stat.latency_max, stat.latency_sum > 0)
   end
end

local FORMATS = { csv = sysbench.report_csv, json = sysbench.report_json, default = sysbench.report_default, own = own }

sysbench.hooks.report_intermediate = function(stat)
   return FORMATS[sysbench.opt.format](stat)
end
sysbench.hooks.report_cumulative = function(stat)
   return FORMATS[sysbench.opt.format](stat)
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query("SELECT 1")
   con:query("SELECT 2")
   con:query("BEGIN")
   con:query("ROLLBACK")
end
