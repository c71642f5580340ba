-- Commands of a script's own, side by side and not; built-in ones that it makes its own.
sysbench.cmdline.options = { tables = {"tables", 4} }

local function places(name)
   local con = sysbench.sql.driver():connect()
   con:query(string.format("INSERT INTO seen (v) VALUES ('%s %d')", name, sysbench.tid))
   for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      con:query(string.format("INSERT INTO seen (v) VALUES ('%s table %d')", name, i))
   end
end

sysbench.cmdline.commands = {
   prepare = {function() places("prepare") end, sysbench.cmdline.PARALLEL_COMMAND},
   one = {function() places("one") end},
   many = {function() places("many") end, sysbench.cmdline.PARALLEL_COMMAND},
   fails = {function() places("fails") return false end, sysbench.cmdline.PARALLEL_COMMAND},
   returns = {function() places("returns") return true end, sysbench.cmdline.PARALLEL_COMMAND},
   ["two-words"] = {function() places("two words") end}
}

function event()
   places("event")
end

function cleanup()
   places("cleanup")
end
