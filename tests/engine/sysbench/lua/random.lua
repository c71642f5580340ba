-- Random numbers: ranges, types and the shape of each distribution.
sysbench.cmdline.options = { draws = {"draws of each kind", 20000} }

-- A measure that differs from run to run, rounded so that it does not.
local function about(value, step)
   return string.format("%d", math.floor(value / step + 0.5) * step)
end

local function shape(name, draw, low, high)
   local inside, sum, halves, whole = 0, 0, 0, 0
   for _ = 1, sysbench.opt.draws do
      local value = tonumber(draw(low, high))
      if value >= low and value <= high then inside = inside + 1 end
      if value == math.floor(value) then whole = whole + 1 end
      if value <= (low + high) / 2 then halves = halves + 1 end
      sum = sum + value
   end
   local n = sysbench.opt.draws
   print(name, low, high, inside == n, whole == n, "mean " .. about(100 * (sum / n - low) / math.max(high - low, 1), 10),
         "lower half " .. about(100 * halves / n, 10))
end

function event()
   for _, name in ipairs({"uniform", "gaussian", "pareto"}) do
      shape(name, sysbench.rand[name], 1, 1000)
      shape(name, sysbench.rand[name], 5, 5)
   end
   shape("special", sysbench.rand.special, 1, 100000)
   shape("default", sysbench.rand.default, 1, 100000)
   print("type", type(sysbench.rand.uniform(1, 5)), type(sysbench.rand.uniform_double()), type(sysbench.rand.uniform_uint64()))
   print("unique", type(sysbench.rand.unique()))
   local seen, again = {}, 0
   for _ = 1, 1000 do
      local value = tonumber(sysbench.rand.unique())
      if seen[value] then again = again + 1 end
      seen[value] = true
   end
   print("unique again", again)
   local low, high = 1, 0
   for _ = 1, 10000 do
      local value = sysbench.rand.uniform_double()
      low, high = math.min(low, value), math.max(high, value)
   end
   print("double", low >= 0, high <= 1, low < 0.01, high > 0.99)
   for _, template in ipairs({"", "abc", "###", "@@@", "#-@-#", "x#y@z", "\\#", "##########-@@@@@@@@@@"}) do
      local value = sysbench.rand.string(template)
      print("string", template, #value, (value:gsub("%d", "#"):gsub("%l", "@")))
   end
   print("upper", sysbench.rand.string(("@"):rep(2000)):find("[^a-z]") == nil, sysbench.rand.string(("#"):rep(2000)):find("[^0-9]") == nil)
   print("old names", type(sb_rand(1, 9)), type(sb_rnd()), type(sb_rand_uniform(1, 9)), type(sb_rand_gaussian(1, 9)),
         type(sb_rand_special(1, 9)), type(sb_rand_uniq(1, 4294967295)), #sb_rand_str("##@@"))
end
