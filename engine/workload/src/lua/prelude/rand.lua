-- Random numbers. The functions are native ones that are called through the ffi library, as in sysbench, so that LuaJIT
-- can compile the calls. Scripts find the functions in ffi.C too.

local native = ...

local ffi = require("ffi")

local C = native.C

function C.sb_rand_str(template, buffer)
   local text = native.rand_string(ffi.string(template))
   ffi.copy(buffer, text, #text)
end

function C.sb_rand_varstr(buffer, shortest, longest)
   local text = native.rand_varstring(shortest, longest)
   ffi.copy(buffer, text, #text)
   return #text
end

local rand = {}
sysbench.rand = rand

local default, uniform, gaussian = C.sb_rand_default, C.sb_rand_uniform, C.sb_rand_gaussian
local special, pareto, zipfian = C.sb_rand_special, C.sb_rand_pareto, C.sb_rand_zipfian
local unique, uint64, double = C.sb_rand_unique, C.sb_rand_uniform_uint64, C.sb_rand_uniform_double

function rand.default(a, b) return default(a, b) end
function rand.uniform(a, b) return uniform(a, b) end
function rand.gaussian(a, b) return gaussian(a, b) end
function rand.special(a, b) return special(a, b) end
function rand.pareto(a, b) return pareto(a, b) end
function rand.zipfian(a, b) return zipfian(a, b) end
function rand.unique() return unique() end
function rand.uniform_uint64() return uint64() end
function rand.uniform_double() return double() end

function rand.string(template)
   if type(template) ~= "string" then
      error("attempt to get length of local 'fmt' (a " .. type(template) .. " value)", 2)
   end
   return native.rand_string(template)
end

function rand.varstring(shortest, longest)
   assert(shortest <= longest)
   return native.rand_varstring(shortest, longest)
end
