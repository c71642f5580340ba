-- Files that Lua executes: scripts, modules and libraries.
--
-- The top level of a file may use the server. Lua's own functions for loading files are replaced, because a coroutine
-- could not yield through them. Root executes no file that another account could replace, whether the user,
-- `package.path`, `package.cpath` or `ffi.load` names it.

local native = ...

local ffi = require("ffi")

local load_chunk, load_library, load_names = loadfile, package.loadlib, ffi.load

-- Raises an error if root must not execute a file.
local function check(file)
   local refusal = native.refusal(tostring(file))
   if refusal then
      error("cannot run " .. tostring(file) .. ": " .. refusal, 0)
   end
end

function loadfile(file, ...)
   if file ~= nil then
      check(file)
   end
   return load_chunk(file, ...)
end

function dofile(path)
   local chunk, problem = loadfile(path)
   if not chunk then
      error(problem, 0)
   end
   return chunk()
end

function package.loadlib(file, ...)
   check(file)
   return load_library(file, ...)
end

-- A name without a directory is a library of the operating system.
function ffi.load(name, ...)
   if tostring(name):find("/", 1, true) then
      check(name)
   end
   return load_names(name, ...)
end

local function find_chunk(name)
   local file, tried = native.find_module(name, package.path)
   if not file then
      return tried
   end
   local chunk, problem = loadfile(file)
   return chunk or error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. problem, 0)
end

-- Loads a library with Lua's own function `find`, after checking that the library is safe. `find` searches for the
-- library again, so it is shown only this one file.
local function find_library(find, name, whole)
   local path = package.cpath
   local file, tried = native.find_module(name, path)
   if not file then
      return tried
   end
   check(file)
   package.cpath = file
   local ok, found = pcall(find, whole)
   package.cpath = path
   return ok and found or error(found, 0)
end

local find_own, find_in_root = package.loaders[3], package.loaders[4]

package.loaders[2] = find_chunk
package.loaders[3] = function(name)
   return find_library(find_own, name, name)
end
package.loaders[4] = function(name)
   local root = name:match("^(.-)%.")
   return root and find_library(find_in_root, root, name)
end

-- Modules of sysbench that scripts require. They are used if sysbench is not installed.
package.loaders[5] = function(name)
   local source = native.modules[name]
   if source then
      return assert(loadstring(source, "=" .. name .. ".lua"))
   end
end

local loading = {}

function require(name)
   name = tostring(name)
   local loaded = package.loaded
   if loaded[name] ~= nil then
      if loaded[name] == loading then
         error("loop or previous error loading module '" .. name .. "'", 2)
      end
      return loaded[name]
   end
   local tried = {}
   for _, find in ipairs(package.loaders) do
      local found = find(name)
      if type(found) == "function" then
         loaded[name] = loading
         local made = found(name)
         if made ~= nil then
            loaded[name] = made
         elseif loaded[name] == loading then
            loaded[name] = true
         end
         return loaded[name]
      elseif type(found) == "string" then
         tried[#tried + 1] = found
      end
   end
   error("module '" .. name .. "' not found:" .. table.concat(tried), 2)
end
