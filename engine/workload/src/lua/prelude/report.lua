-- Hooks, and the formats of reports that hooks can use.

local native = ...

sysbench.hooks = {}

local function per_second(stat, count)
   return count / stat.time_interval
end

local function queries(stat)
   return stat.reads + stat.writes + stat.other
end

function sysbench.report_csv(stat)
   print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
                       stat.time_total,
                       stat.threads_running,
                       per_second(stat, stat.events),
                       per_second(stat, queries(stat)),
                       per_second(stat, stat.reads),
                       per_second(stat, stat.writes),
                       per_second(stat, stat.other),
                       stat.latency_pct * 1000,
                       per_second(stat, stat.errors),
                       per_second(stat, stat.reconnects)))
end

-- All reports are elements of one JSON array. Its end is written when the Lua state that reports is closed.
local json_end

function sysbench.report_json(stat)
   if json_end then
      io.write(",\n")
   else
      io.write("[\n")
      json_end = newproxy(true)
      getmetatable(json_end).__gc = function() io.write("\n]\n") end
   end
   local lines = {
      string.format('    "time": %4.0f,', stat.time_total),
      string.format('    "threads": %u,', stat.threads_running),
      string.format('    "tps": %4.2f,', per_second(stat, stat.events)),
      '    "qps": {',
      string.format('      "total": %4.2f,', per_second(stat, queries(stat))),
      string.format('      "reads": %4.2f,', per_second(stat, stat.reads)),
      string.format('      "writes": %4.2f,', per_second(stat, stat.writes)),
      string.format('      "other": %4.2f', per_second(stat, stat.other)),
      "    },",
      string.format('    "latency": %4.2f,', stat.latency_pct * 1000),
      string.format('    "errors": %4.2f,', per_second(stat, stat.errors)),
      string.format('    "reconnects": %4.2f', per_second(stat, stat.reconnects)),
   }
   io.write("  {\n", table.concat(lines, "\n"), "\n  }")
end

function sysbench.report_default(stat)
   print(string.format("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f "
                          .. "err/s %4.2f reconn/s: %4.2f",
                       stat.time_total,
                       stat.threads_running,
                       per_second(stat, stat.events),
                       per_second(stat, queries(stat)),
                       per_second(stat, stat.reads),
                       per_second(stat, stat.writes),
                       per_second(stat, stat.other),
                       sysbench.opt.percentile,
                       stat.latency_pct * 1000,
                       per_second(stat, stat.errors),
                       per_second(stat, stat.reconnects)))
end
