-- The constants and results of the SQL API. As in sysbench, a connection has one result, which is valid until the
-- connection's next query. Its data are in the connection's record.

local native = ...

local ffi = require("ffi")
local parts, say, C = native.sql, native.say, native.C
local byte, sub = string.byte, string.sub
local find = parts.results.find

local sql = {}
sysbench.sql = sql

sql.type = {
   NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8, DATETIME = 9,
   TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
}

sql.error = {NONE = 0, IGNORABLE = 1, FATAL = 2}

sysbench.error = {NONE = 0, RESTART_EVENT = 1}

-- Returns the byte at which the next row begins among the messages of a result; nil after the last row.
local function next_row(con)
   local data = con.data
   if not data then
      if con.is_free then
         say(false, "attempt to fetch row from an invalid result set")
         return nil
      elseif con.rows == 0 then
         say(false, "attempt to fetch row from an empty result set")
         return nil
      end
      data = native.rows(con.number)
      con.data, con.at = data, 1
   end
   if con.at > #data then
      return nil
   end
   return data, con.at
end

-- Returns the length of the row's value at this place; nil for NULL.
local function length_at(data, at)
   local a, b, c, d = byte(data, at, at + 3)
   if a < 128 then
      return ((a * 256 + b) * 256 + c) * 256 + d
   end
end

-- A DataRow message has its type, its length and the number of values, and then each value after its length.
local function count_at(data, at)
   local high, low = byte(data, at + 5, at + 6)
   return high * 256 + low, at + 7
end

local result = {}

-- Returns the next row as an array, in which NULL is nil. Returns nil after the last row.
function result:fetch_row()
   local con = find(self)
   local data, at = next_row(con)
   if not data then
      return nil
   end
   local count
   count, at = count_at(data, at)
   local row = {}
   for i = 1, count do
      local length = length_at(data, at)
      at = at + 4
      if length then
         row[i] = sub(data, at, at + length - 1)
         at = at + length
      end
   end
   con.at = at
   return row
end

local no_row = ffi.cast("sql_row *", nil)

-- Returns the next row in sysbench's structure. Its values are valid until the connection's next query.
function C.db_fetch_row(rs)
   local con = find(rs)
   local data, at = next_row(con)
   if not data then
      return no_row
   end
   local count
   count, at = count_at(data, at)
   local values, text = ffi.new("sql_value[?]", count), ffi.cast("const char *", data)
   for i = 0, count - 1 do
      local length = length_at(data, at)
      at = at + 4
      if length then
         values[i].len, values[i].ptr = length, text + (at - 1)
         at = at + length
      end
   end
   con.at, con.values, con.row_data = at, values, data
   local row = con.rs.row
   row.values = values
   return con.row
end

-- Returns the names of the columns as an array.
function result:fetch_fields()
   local con = find(self)
   local names, description = {}, con.columns or native.columns(con.number)
   local at = 3
   for i = 1, con.fields do
      local last = string.find(description, "\0", at, true)
      names[i] = sub(description, at, last - 1)
      at = last + 1 + 18 -- table, attribute, type, size, modifier, format
   end
   return names
end

-- Makes the connection forget its result.
local function forget_result(con)
   con.is_free, con.data, con.rows, con.fields = true, nil, 0, 0
   local rs = con.rs
   rs.nrows, rs.nfields, rs.statement = 0, 0, nil
end

-- Returns 0 if there was a result to free, 1 otherwise.
function C.db_free_results(rs)
   local con = find(rs)
   if con.is_closed then
      say(false, "attempt to use an already closed connection")
      return 1
   elseif con.is_free then
      say(false, "attempt to free an invalid result set")
      return 1
   end
   forget_result(con)
   return 0
end

function result:free()
   if C.db_free_results(self) ~= 0 then
      error("db_free_results() failed", 2)
   end
   return true, "db_free_results() failed"
end

local function name() return "<sql_result>" end

ffi.metatype("sql_result", {__index = result, __tostring = name})

-- The result of a statement without rows. As in sysbench it is a null pointer, which equals nil but counts as true.
ffi.cdef("typedef struct { int nothing; } pgtrial_no_result;")

ffi.metatype("pgtrial_no_result", {
   __tostring = name,
   __index = {
      nrows = 0,
      nfields = 0,
      fetch_row = function()
         say(false, "attempt to fetch row from an invalid result set")
      end,
      free = function()
         say(false, "attempt to free an invalid result set")
         error("db_free_results() failed", 2)
      end,
      fetch_fields = function() return {} end,
   },
})

parts.no_result, parts.forget_result = ffi.cast("pgtrial_no_result *", nil), forget_result
