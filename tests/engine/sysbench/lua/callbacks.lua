-- Queries from within functions that Lua's library calls back.
sysbench.cmdline.options = { from = {"sort or gsub", "sort"} }

local FROM = {}

function FROM.sort(con)
   local list = {3, 1, 2}
   table.sort(list, function(a, b) return con:query_row("SELECT " .. a .. " < " .. b) == "t" end)
   return table.concat(list, " ")
end

function FROM.gsub(con)
   return (("a b c"):gsub("%w", function(letter) return con:query_row("SELECT upper('" .. letter .. "')") end))
end

function event()
   local con = sysbench.sql.driver():connect()
   print(sysbench.opt.from, FROM[sysbench.opt.from](con))
end
