-- The connections of the SQL API: they send statements as requests, and report errors as sysbench does.

local native = ...

local ffi = require("ffi")
local parts, C, text_of = native.sql, native.C, native.text
local request, kind, say = native.request, native.kind, native.say
local no_result, forget_result = parts.no_result, parts.forget_result
local find = parts.connections.find
local no_rows = parts.results.null

local NONE, IGNORABLE, FATAL = sysbench.sql.error.NONE, sysbench.sql.error.IGNORABLE, sysbench.sql.error.FATAL

-- libpq's status of a statement that failed.
local PGRES_FATAL_ERROR = 7

local turn, exchange_buffer, ask, write_text = native.turn, native.exchange_buffer, native.ask, native.write_text
local query, first_query = kind.query, kind.first_query

-- The SQLSTATEs after which an event is restarted: deadlock, serialization failure and unique violation.
local ignorable = {["40P01"] = true, ["40001"] = true, ["23505"] = true}

-- Records the outcome of the connection's last call, for Lua and in sysbench's structure.
local function note(con, outcome, state, message)
   local made = con.made
   made.error, made.sql_errno, made.sql_state, made.sql_errmsg = outcome, 0, state, message
   con.error, con.sql_state, con.sql_errmsg = outcome, state, message
end

local function is_usable(con)
   if con.is_closed then
      say(false, "attempt to use an already closed connection")
      note(con, FATAL)
      return false
   end
   return true
end

-- Makes a result from the answer to a query. If the query failed, prints the error as sysbench's driver does, and
-- returns nil. `stmt` is the record of the statement, if it was prepared.
local function take_answer(con, caller, text, stmt, is_done, state, message)
   if is_done then
      turn.goes_on = exchange_buffer.goes_on ~= 0
      if con.error ~= NONE then
         note(con, NONE)
      end
      local rows, fields = exchange_buffer.rows, exchange_buffer.columns
      if stmt then
         -- The number of columns is known since the statement was prepared.
         fields = stmt.nfields
      end
      if fields < 0 then
         if not con.is_free then
            forget_result(con)
         end
         return no_result
      end
      local rs = con.rs
      rs.nrows, rs.nfields = rows, fields
      if con.statement ~= stmt then
         con.statement = stmt
         rs.statement = stmt and stmt.pointer()
      end
      con.rows, con.fields, con.columns, con.data, con.is_free = rows, fields, stmt and stmt.columns, nil, false
      return con.result
   end
   turn.goes_on = false
   if not con.is_free then
      forget_result(con)
   end
   if ignorable[state] then
      note(con, IGNORABLE, state, message)
      exchange_buffer.connection = con.number
      request(kind.rollback)
      return nil
   end
   note(con, FATAL, state, message)
   if not state then
      return nil
   end
   say(true, string.format("%s() failed: %d %s", caller, PGRES_FATAL_ERROR, message))
   if text then
      say(true, "failed query was: " .. text)
   end
   return nil
end

local function run(con, text)
   if not is_usable(con) then
      return nil
   end
   exchange_buffer.connection = con.number
   write_text(text)
   local is_done, state, message = ask(query, first_query)
   return take_answer(con, "PQexec", text, nil, is_done, state, message)
end

-- Raises the connection's last error in the caller of the method that calls this function. The method must not call it
-- as a tail call, which would hide the method. `con` is the record of the connection, and `pointer` is the script's
-- pointer to it.
local function raise(con, pointer, query)
   if con.sql_state == nil or con.sql_errmsg == nil then
      error("SQL API error", 3)
   end
   local description = {
      connection = pointer, query = query, sql_errno = 0, sql_state = con.sql_state, sql_errmsg = con.sql_errmsg,
   }
   local hook = sysbench.hooks.sql_error_ignorable
   if con.error == IGNORABLE or con.error == FATAL and type(hook) == "function" and hook(description) then
      description.errcode = sysbench.error.RESTART_EVENT
      error(description, 3)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", 0, con.sql_state, con.sql_errmsg), 3)
end

local connection = {}

function connection:check_error(rs, query)
   local con = find(self)
   if rs == nil and con.error ~= NONE then
      raise(con, self, query)
   end
   return rs
end

-- Raises an error unless `text` is a text. The error has the wording of sysbench's method `name` and its parameter
-- `parameter`, and is raised in the caller of that method.
local function check_text(name, parameter, text)
   if type(text) == "string" then
      return
   elseif type(text) == "table" then
      error(string.format("bad argument #2 to 'db_%s' (cannot convert 'table' to 'const char *')", name), 3)
   end
   error(string.format("attempt to get length of local '%s' (a %s value)", parameter, type(text)), 3)
end

function connection:query(text)
   check_text("query", "query", text)
   local con = find(self)
   local rs = run(con, text)
   if not rs then
      raise(con, self, text)
   end
   return rs
end

-- Returns the result, or a null pointer if there is none.
function C.db_query(con, text, length)
   local rs = run(find(con), text_of(text, length))
   return rs ~= nil and rs or no_rows
end

-- Returns the values of the first row.
function connection:query_row(text)
   check_text("query", "query", text)
   local con = find(self)
   local rs = run(con, text)
   if not rs then
      raise(con, self, text)
   end
   if rs.nrows == 0 or rs.nfields == 0 then
      return nil
   end
   return unpack(rs:fetch_row(), 1, rs.nfields)
end

-- Functions that close a connection or open it again.

function C.db_connection_close(pointer)
   local con = find(pointer)
   if con.is_closed then
      say(false, "attempt to close an already closed connection")
      return 0
   end
   con.is_closed = true
   exchange_buffer.connection = con.number
   request(kind.disconnect)
   return 0
end

function connection:disconnect()
   C.db_connection_close(self)
   return true
end

-- Closes a connection that the script has dropped, and frees its structures.
local function close(con, pointer)
   if not con.is_closed then
      con.is_closed = true
      exchange_buffer.connection = con.number
      request(kind.disconnect)
   end
   parts.connections.free(con.number, con.made, pointer)
   parts.results.free(con.number, con.rs, con.result)
end

function C.db_connection_free(pointer)
   close(find(pointer), ffi.gc(pointer, nil))
end

local function reconnect(con)
   exchange_buffer.connection = con.number
   local done, _, message = request(kind.reconnect)
   con.is_closed = not done
   if not done then
      say(true, "Connection to database failed: " .. message .. "\n")
   end
   return done
end

function C.db_connection_reconnect(pointer)
   return reconnect(find(pointer)) and 0 or 1
end

function connection:reconnect()
   if not reconnect(find(self)) then
      error("assertion failed!", 2)
   end
   return true
end

parts.connection, parts.close_connection = connection, close
parts.check_text = check_text
parts.note, parts.is_usable, parts.take_answer, parts.run, parts.raise = note, is_usable, take_answer, run, raise
