-- The SQL API's parameters, statements and drivers.

local native = ...

local ffi = require("ffi")
local parts, sql = native.sql, sysbench.sql
local request, kind, say = native.request, native.kind, native.say
local sub, floor, ceil = string.sub, math.floor, math.ceil
local connection, is_usable, take_answer, run, raise =
   parts.connection, parts.is_usable, parts.take_answer, parts.run, parts.raise
local when_dropped, close_dropped = parts.when_dropped, parts.close_dropped
local types, NONE, FATAL = sql.type, sql.error.NONE, sql.error.FATAL

-- What a result is counted as
local READ = 1

-- Parameters

local param = {}
param.__index = param
param.__tostring = function() return "<sql_param>" end

local box = ffi.new("int64_t[1]")

-- A whole number as the server is to read it: beyond 53 bits, or from a value of the ffi library, as digits.
local function whole(value)
   if type(value) == "number" and value > -9007199254740992 and value < 9007199254740992 then
      return value >= 0 and floor(value) or ceil(value)
   end
   box[0] = value
   return (tostring(box[0]):gsub("LL$", ""))
end

function param:set(value)
   local type_ = self.type
   if value == nil then
      self.value = nil
   elseif type_ == types.BIGINT then
      if type(value) == "number" and value % 1 == 0 and value > -9007199254740992 and value < 9007199254740992 then
         self.value = value
         return
      end
      local ok, text = pcall(whole, value)
      if not ok then
         error(string.format("cannot convert '%s' to 'int64_t'", type(value)), 2)
      end
      self.value = text
   elseif type_ == types.DOUBLE then
      local number = tonumber(value)
      if number == nil then
         error(string.format("cannot convert '%s' to 'double'", type(value)), 2)
      end
      self.value = number
   else
      if type(value) ~= "string" then
         error(string.format("attempt to get length of local 'value' (a %s value)", type(value)), 2)
      end
      self.value = #value > self.max_len and sub(value, 1, self.max_len) or value
   end
end

function param:set_rand_str(template)
   if self.type ~= types.VARCHAR then
      error("Unsupported argument type: " .. self.type, 2)
   end
   local text = native.rand_string(template)
   self.value = #text > self.max_len and sub(text, 1, self.max_len) or text
end

-- Statements

local statement = {}
statement.__index = statement
statement.__tostring = function() return "<sql_statement>" end

-- The types' OIDs: int8, float8, varchar
local oids = {[types.BIGINT] = 20, [types.DOUBLE] = 701, [types.VARCHAR] = 1043, [types.INT] = 23}

local function has_server_prepare(stmt, types_)
   local con = stmt.connection
   local number = native.statements
   native.statements = number + 1
   close_dropped()
   local done, fields, message, whole = request(kind.prepare, con.number, number, stmt.text, unpack(types_))
   if done then
      con.error = NONE
      stmt.number, stmt.nfields = number, fields
      if fields and fields > 0 then
         stmt.columns = native.columns(con.number)
      end
      stmt.ticket = when_dropped(number, 1)
      return true
   end
   con.error, con.sql_errno, con.sql_state, con.sql_errmsg = FATAL, 0, fields, message
   say(true, "PQprepare() failed: " .. whole .. "\n")
   return false
end

function connection:prepare(text)
   if not is_usable(self) then
      raise(self, text)
   end
   text = string.match(text, "^%Z*")
   local _, holes = string.gsub(text, "?", "")
   local stmt = setmetatable({connection = self, text = text, holes = holes, params = {}}, statement)
   stmt.is_emulated = sysbench.opt ~= nil and sysbench.opt.db_ps_mode == "disable"
   if holes == 0 and not stmt.is_emulated and not has_server_prepare(stmt, {}) then
      raise(self, text)
   end
   return stmt
end

function statement:bind_create(type_, max_len)
   local made
   if type_ == types.TINYINT or type_ == types.SMALLINT or type_ == types.INT or type_ == types.BIGINT then
      made = {type = types.BIGINT, max_len = 8, value = 0}
   elseif type_ == types.FLOAT or type_ == types.DOUBLE then
      made = {type = types.DOUBLE, max_len = 8, value = 0}
   elseif type_ == types.CHAR or type_ == types.VARCHAR then
      if type(max_len) ~= "number" then
         error("bad argument #2 to 'bind_create' (the longest value's length expected, got " .. type(max_len) .. ")", 2)
      end
      made = {type = types.VARCHAR, max_len = max_len, value = ""}
   else
      error("Unsupported argument type: " .. tostring(type_), 2)
   end
   return setmetatable(made, param)
end

-- 0 if it is done, 1 if the statement could not be prepared, nil without parameters.
function statement:bind_param(...)
   local count = select("#", ...)
   if count < 1 then
      return nil
   end
   local params, types_ = {...}, {}
   if not self.is_emulated and count ~= self.holes then
      say(false, "wrong number of parameters in prepared statement")
      return 1
   end
   if not self.is_emulated and not self.number then
      for i = 1, count do
         types_[i] = oids[params[i].type]
      end
      if not is_usable(self.connection) or not has_server_prepare(self, types_) then
         return 1
      end
   end
   self.params = params
   return 0
end

local function written(value, type_)
   if value == nil then
      return "NULL"
   elseif type_ == types.VARCHAR then
      return "'" .. value .. "'"
   elseif type_ == types.DOUBLE then
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
      return mine and written(mine.value, mine.type) or "NULL"
   end)
   return run(stmt.connection, text)
end

local function request_execution(stmt)
   local params, number, con = stmt.params, stmt.number, stmt.connection.number
   local count = #params
   if count == 0 then
      return request(kind.execute, con, number)
   elseif count == 1 then
      return request(kind.execute, con, number, params[1].value)
   elseif count == 2 then
      return request(kind.execute, con, number, params[1].value, params[2].value)
   end
   local values = {}
   for i = 1, count do
      values[i] = params[i].value
   end
   return request(kind.execute, con, number, unpack(values, 1, count))
end

local function execute(stmt)
   local con = stmt.connection
   if not is_usable(con) then
      return nil
   end
   if stmt.is_emulated then
      return execute_emulated(stmt)
   end
   if not stmt.number then
      say(false, "attempt to execute a statement that is not prepared or whose parameters are not bound")
      con.error, con.sql_state, con.sql_errmsg = FATAL, nil, nil
      return nil
   end
   return take_answer(con, "PQexecPrepared", nil, stmt, request_execution(stmt))
end

function statement:execute()
   local rs = execute(self)
   if not rs then
      raise(self.connection, "<prepared statement>")
   end
   return rs
end

function statement:close()
   if self.number then
      parts.forget(self.ticket)
      request(kind.close, self.number)
      self.number = nil
   end
   return 0
end

-- Drivers

local driver = {sname = "pgsql", lname = "PostgreSQL driver"}
driver.__index = driver
driver.__tostring = function() return "<sql_driver>" end

function driver:name()
   return self.sname
end

local function connect()
   native.use_sql()
   close_dropped()
   local number = native.connections
   native.connections = number + 1
   local done, _, message = request(kind.connect, number)
   if not done then
      say(true, "Connection to database failed: " .. message .. "\n")
      return nil
   end
   local rs = setmetatable({connection = number, nrows = 0, nfields = 0, counter = READ}, parts.result)
   local con = setmetatable({number = number, error = NONE, sql_errno = 0, result = rs}, connection)
   con.ticket = when_dropped(number, 0)
   return con
end

function driver:connect()
   local con = connect()
   if not con then
      error("connection creation failed", 2)
   end
   con.driver = self
   return con
end

function sql.driver(name)
   if name ~= nil and name ~= "pgsql" then
      say(true, "invalid database driver name: '" .. tostring(name) .. "'")
      error("failed to initialize the DB driver", 2)
   end
   native.use_sql()
   return setmetatable({}, driver)
end

-- For the API of sysbench 0.5
parts.connect, parts.execute, parts.statement = connect, execute, statement
