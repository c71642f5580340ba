-- Prepared statements of the SQL API.

local native = ...

local ffi = require("ffi")
local parts, C, text_of, types = native.sql, native.C, native.text, sysbench.sql.type
local request, kind, say = native.request, native.kind, native.say
local exchange_buffer, ask, write_values = native.exchange_buffer, native.ask, native.write_values
local execute_kind, first_execute = kind.execute, kind.first_execute
local connection, note, is_usable, take_answer, run, raise =
   parts.connection, parts.note, parts.is_usable, parts.take_answer, parts.run, parts.raise
local close_dropped, value_of, check_text = parts.close_dropped, parts.value_of, parts.check_text
local find, find_connection = parts.statements.find, parts.connections.find
local no_rows, no_statement = parts.results.null, parts.statements.null

local FATAL, NONE = sysbench.sql.error.FATAL, sysbench.sql.error.NONE

-- The OIDs of the types in PostgreSQL, as sysbench's driver declares them.
local oids = {
   [types.TINYINT] = 0, [types.SMALLINT] = 21, [types.INT] = 23, [types.BIGINT] = 20, [types.FLOAT] = 700,
   [types.DOUBLE] = 701, [types.CHAR] = 18, [types.VARCHAR] = 1043,
}

local function has_server_prepare(stmt, types_)
   local con = stmt.connection
   close_dropped()
   exchange_buffer.connection, exchange_buffer.statement = con.number, stmt.number
   local done, _, _, whole = request(kind.prepare, stmt.text, types_)
   if done then
      if con.error ~= NONE then
         note(con, NONE)
      end
      local fields = exchange_buffer.columns
      stmt.is_prepared, stmt.nfields = true, fields
      if fields > 0 then
         stmt.columns = native.columns(con.number)
      end
      return true
   end
   -- As in sysbench, the connection keeps the SQLSTATE and the message of its last query.
   note(con, FATAL, con.sql_state, con.sql_errmsg)
   say(true, "PQprepare() failed: " .. whole .. "\n")
   return false
end

local function close(stmt, pointer)
   if stmt.is_prepared then
      exchange_buffer.statement = stmt.number
      request(kind.close)
   end
   parts.statements.free(stmt.number, stmt.made, pointer)
end

-- Prepares a statement. Returns the pointer for the script and the statement's record, or nil if this fails.
local function prepare(con, text)
   if not is_usable(con) then
      return nil
   end
   text = string.match(text, "^%Z*")
   local _, holes = string.gsub(text, "?", "")
   local number = native.statements
   native.statements = number + 1
   local stmt = {connection = con, number = number, text = text, holes = holes, params = {}, close = close}
   stmt.is_emulated = sysbench.opt ~= nil and sysbench.opt.db_ps_mode == "disable"
   if holes == 0 and not stmt.is_emulated and not has_server_prepare(stmt, {}) then
      return nil
   end
   local pointer
   pointer, stmt.made = parts.statements.make(number, stmt)
   stmt.made.connection = con.pointer()
   stmt.pointer = function() return ffi.cast("sql_statement *", stmt.made) end
   return pointer, stmt
end

function connection:prepare(text)
   check_text("prepare", "query", text)
   local con = find_connection(self)
   local pointer, stmt = prepare(con, text)
   if not pointer then
      raise(con, self, text)
   end
   return parts.close_when_dropped(pointer, stmt)
end

function C.db_prepare(con, text, length)
   return prepare(find_connection(con), text_of(text, length)) or no_statement
end

-- Binds parameters. Returns 0, or 1 if the statement could not be prepared.
local function bind(stmt, params)
   local count, types_ = #params, {}
   if not stmt.is_emulated and count ~= stmt.holes then
      say(false, "wrong number of parameters in prepared statement")
      return 1
   end
   if not stmt.is_emulated and not stmt.is_prepared then
      for i = 1, count do
         types_[i] = oids[params[i].type]
      end
      if not is_usable(stmt.connection) or not has_server_prepare(stmt, types_) then
         return 1
      end
   end
   stmt.params = params
   return 0
end

function C.db_bind_param(stmt, binds, count)
   local params = {}
   for i = 1, tonumber(count) do
      params[i] = parts.parameter_of_bind(binds[i - 1])
   end
   return bind(find(stmt), params)
end

-- sysbench's driver for PostgreSQL ignores the buffers to which results are bound.
function C.db_bind_result(stmt)
   find(stmt)
   return 0
end

local function written(value, type_)
   if value == nil then
      return "NULL"
   elseif type_ == types.VARCHAR or type_ == types.CHAR then
      return "'" .. value .. "'"
   elseif type_ == types.DOUBLE or type_ == types.FLOAT then
      return string.format("%f", value)
   elseif type(value) == "number" then
      return string.format("%d", value)
   end
   return value
end

local function execute_emulated(stmt)
   local i = 0
   local text = string.gsub(stmt.text, "?", function()
      i = i + 1
      local mine = stmt.params[i]
      return mine and written(value_of(mine), mine.type) or "NULL"
   end)
   local con = stmt.connection
   local rs = run(con, text)
   if rs == con.result then
      con.statement, con.rs.statement = stmt, stmt.pointer()
   end
   return rs
end

local function execute(stmt)
   local con = stmt.connection
   if not is_usable(con) then
      return nil
   end
   if stmt.is_emulated then
      return execute_emulated(stmt)
   end
   if not stmt.is_prepared then
      say(false, "attempt to execute a statement that is not prepared or whose parameters are not bound")
      note(con, FATAL)
      return nil
   end
   local params = stmt.params
   exchange_buffer.connection, exchange_buffer.statement = con.number, stmt.number
   write_values(params, #params, value_of)
   local is_done, state, message = ask(execute_kind, first_execute)
   return take_answer(con, "PQexecPrepared", nil, stmt, is_done, state, message)
end

function C.db_execute(stmt)
   local rs = execute(find(stmt))
   return rs ~= nil and rs or no_rows
end

-- Closes a statement. As in sysbench, returns 1 if the client emulates the statement (`--db-ps-mode=disable`), and 0
-- otherwise.
function C.db_close(pointer)
   local stmt = find(pointer)
   close(stmt, ffi.gc(pointer, nil))
   return stmt.is_emulated and 1 or 0
end

-- The methods of a statement.

local statement = {bind_create = function(_, ...) return parts.create_parameter(...) end, close = C.db_close}

-- Binds parameters. Returns 0, 1 if the statement could not be prepared, or nil if no parameters were given.
function statement:bind_param(...)
   return select("#", ...) > 0 and bind(find(self), {...}) or nil
end

function statement:execute()
   local stmt = find(self)
   local rs = execute(stmt)
   if not rs then
      raise(stmt.connection, stmt.made.connection, "<prepared statement>")
   end
   return rs
end

ffi.metatype("sql_statement", {__index = statement, __tostring = function() return "<sql_statement>" end})

parts.bind, parts.execute = bind, execute
