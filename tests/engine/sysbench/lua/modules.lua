-- require, package.path, ffi, bit, and what else LuaJIT brings.
local own = require("own_module")
local nested = require("folder.inner")
local ffi = require("ffi")
local bit = require("bit")

ffi.cdef[[
typedef struct { int32_t a; double b; char text[16]; } a_structure;
int abs(int);
unsigned long strlen(const char *);
]]

function event()
   print("own", own.name, own.double(21), own == require("own_module"))
   print("nested", nested.name, package.loaded["folder.inner"] == nested)
   local structure = ffi.new("a_structure", 7, 1.5)
   ffi.copy(structure.text, "text")
   print("structure", structure.a, structure.b, ffi.string(structure.text), ffi.sizeof("a_structure"))
   print("C", ffi.C.abs(-5), tonumber(ffi.C.strlen("four")))
   print("int64", 9007199254740993LL, 2ULL ^ 2, tonumber(ffi.new("uint32_t", -1)))
   print("bit", bit.band(0xff, 0x0f), bit.bor(1, 8), bit.lshift(1, 10), bit.tohex(255))
   print("jit", type(jit.version), jit.os, _VERSION)
   print("string", ("x"):rep(3), ("%5.2f|%-5s|%05d"):format(1.005, "a", 42), #string.format("%q", "a\nb"))
   print("table", table.concat({1, 2, 3}, "-"), select("#", unpack({1, nil, 3}, 1, 3)))
   print("goto", (function() for i = 1, 3 do if i == 2 then goto out end end ::out:: return "here" end)())
   print("xpcall", xpcall(function(...) error("x" .. ..., 0) end, function(message) return "handled " .. message end, "y"))
   print("load", loadstring("return 1 + 1")(), load("return ...")(5), pcall(dofile, "nosuch.lua"))
   print("missing", (tostring(select(2, pcall(require, "nosuch_module")))):match("^[^\n]*"))
   print("path", package.path)
   print("env", os.getenv("A_VARIABLE"), os.getenv("NOSUCH"), type(os.time()), type(os.clock()))
   print("setfenv", setfenv(function() return inside end, { inside = "fenv" })())
   local file = io.open("written.txt", "w")
   file:write("a line\n")
   file:close()
   for line in io.lines("written.txt") do print("file", line) end
   print("gc", collectgarbage("count") > 0, os.remove("written.txt"))
end
