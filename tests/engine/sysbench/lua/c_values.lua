-- Random numbers, histograms and the declaration of options by the functions of C.
local ffi = require("ffi")
local C = ffi.C

local args = ffi.new("sb_arg_t[3]")
args[0].name, args[0].desc, args[0].value, args[0].type = "a_number", "a number", "4", C.SB_ARG_TYPE_INT
args[1].name, args[1].desc, args[1].value, args[1].type = "a_text", "a text", "x", C.SB_ARG_TYPE_STRING
args[2].name, args[2].desc, args[2].type = "nothing", "nothing", C.SB_ARG_TYPE_STRING
if not sysbench.cmdline.options then
   print("options", C.sb_lua_set_test_args(args, 3))
end

function help()
   C.sb_print_test_options()
end

function event()
   for _, name in ipairs({"default", "uniform", "gaussian", "special", "pareto"}) do
      local draw, inside = C["sb_rand_" .. name], 0
      for _ = 1, 1000 do
         local value = draw(10, 20)
         inside = inside + ((value >= 10 and value <= 20) and 1 or 0)
      end
      print(name, type(draw(1, 1)), inside)
   end
   print("unique", type(C.sb_rand_unique()), type(C.sb_rand_uniform_uint64()), type(C.sb_rand_uniform_double()))
   local buffer = ffi.new("char[12]")
   C.sb_rand_str("###-@@@-x", buffer)
   print("text", (ffi.string(buffer):gsub("^%d%d%d%-%l%l%l%-", "###-@@@-")))
   print("wrong", pcall(C.sb_rand_uniform, "x", 1))
   local histogram = C.sb_histogram_new(100, 0.01, 1000)
   for i = 1, 50 do
      C.sb_histogram_update(histogram, i)
   end
   C.sb_histogram_print(histogram)
   C.sb_histogram_delete(histogram)
   print("options", sysbench.opt and sysbench.opt.a_number, sysbench.opt and sysbench.opt.a_text)
end
