-- The SQL API's constants, its results, and what is to be closed because a script has dropped it.

local native = ...

local ffi = require("ffi")
local request, kind, say = native.request, native.kind, native.say
local byte, sub = string.byte, string.sub

local sql = {}
sysbench.sql = sql

local types = {
   NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8, DATETIME = 9,
   TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}
sql.type = types

sql.error = {NONE = 0, IGNORABLE = 1, FATAL = 2}

sysbench.error = {NONE = 0, RESTART_EVENT = 1}

-- What a script has dropped without closing it is closed when the collector finds out.

local dropped = {}
local ticket = ffi.typeof("struct { int number; int is_statement; }")

local function when_dropped(number, is_statement)
   return ffi.gc(ticket(number, is_statement), function(mine)
      dropped[#dropped + 1] = mine
   end)
end

-- What is closed need not be closed again.
local function forget(mine)
   ffi.gc(mine, nil)
end

local function close_dropped()
   while #dropped > 0 do
      local mine = table.remove(dropped)
      request(mine.is_statement == 1 and kind.close or kind.disconnect, mine.number)
   end
end

-- Results

local result = {}
result.__index = result
result.__tostring = function() return "<sql_result>" end

-- The next row as an array in which NULL is nil; nil after the last one.
function result:fetch_row()
   local data, at = self.data, self.at
   if not data then
      if self.nrows == 0 or self.is_free then
         say(false, "attempt to fetch row from an " .. (self.is_free and "invalid" or "empty") .. " result set")
         return nil
      end
      data, at = native.rows(self.connection), 1
      self.data = data
   end
   if at > #data then
      return nil
   end
   -- a DataRow message: its kind, length and number of values, then each value with its length, of which -1 is NULL
   local high, low = byte(data, at + 5, at + 6)
   at = at + 7
   local row = {}
   for i = 1, high * 256 + low do
      local a, b, c, d = byte(data, at, at + 3)
      at = at + 4
      if a < 128 then
         local length = ((a * 256 + b) * 256 + c) * 256 + d
         row[i] = sub(data, at, at + length - 1)
         at = at + length
      end
   end
   self.at = at
   return row
end

-- The columns' names as an array.
function result:fetch_fields()
   local names, description = {}, self.columns or native.columns(self.connection)
   local at = 3
   for i = 1, self.nfields do
      local last = string.find(description, "\0", at, true)
      names[i] = sub(description, at, last - 1)
      at = last + 1 + 18 -- table, attribute, type, size, modifier, format
   end
   return names
end

function result:free()
   if self.is_free then
      say(false, "attempt to free an invalid result set")
      error("db_free_results() failed", 2)
   end
   self.is_free = true
   self.data = nil
   return true, "db_free_results() failed"
end

-- What statements without rows result in: in sysbench a null pointer, that is equal to nil and true.
ffi.cdef("typedef struct { int nothing; } pgtrial_no_result;")
local no_result = ffi.cast("pgtrial_no_result *", nil)

ffi.metatype("pgtrial_no_result", {
   __tostring = result.__tostring,
   __index = {
      nrows = 0,
      nfields = 0,
      fetch_row = function()
         say(false, "attempt to fetch row from an invalid result set")
      end,
      free = result.free,
      fetch_fields = function() return {} end,
      is_free = true,
   },
})

-- For the other parts of the API
native.sql = {
   result = result, no_result = no_result, when_dropped = when_dropped, close_dropped = close_dropped, forget = forget,
}
