-- The SQL API's connections. What the server is asked goes out as requests; what is said of errors is here.

local native = ...

local parts = native.sql
local request, kind, say = native.request, native.kind, native.say
local no_result = parts.no_result

local NONE, IGNORABLE, FATAL = sysbench.sql.error.NONE, sysbench.sql.error.IGNORABLE, sysbench.sql.error.FATAL

-- libpq's number of an answer that is an error
local PGRES_FATAL_ERROR = 7

-- Deadlock, serialization failure, unique violation: the event is to be restarted.
local ignorable = {["40P01"] = true, ["40001"] = true, ["23505"] = true}

-- The longest text of a bulk insert, bytes, its end included
local LONGEST_BULK = 512 * 1024

local connection = {}
connection.__index = connection
connection.__tostring = function() return "<sql_connection>" end

local function is_usable(con)
   if con.is_closed then
      say(false, "attempt to use an already closed connection")
      con.error, con.sql_state, con.sql_errmsg = FATAL, nil, nil
      return false
   end
   return true
end

-- Makes a result of an answer to a query: the connection's one result, which is good until its next query, as in sysbench.
-- Of a failure it says what it is, as the driver does, and returns nil. `stmt` is the statement, if it was prepared.
local function take_answer(con, caller, text, stmt, rows, fields, message)
   if rows then
      con.error = NONE
      if stmt then
         -- this was told when it was prepared
         fields = stmt.nfields
      end
      if not fields then
         return no_result
      end
      local rs = con.result
      rs.nrows = rows
      rs.nfields = fields
      rs.columns = stmt and stmt.columns
      rs.data = nil
      rs.is_free = false
      return rs
   end
   con.sql_errno, con.sql_state, con.sql_errmsg = 0, fields, message
   if ignorable[fields] then
      con.error = IGNORABLE
      request(kind.rollback, con.number)
      return nil
   end
   con.error = FATAL
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
   return take_answer(con, "PQexec", text, nil, request(kind.query, con.number, text))
end

-- Raises what went wrong in the caller of the method that calls this; not by a tail call, which hides the method.
local function raise(con, query)
   if con.sql_state == nil or con.sql_errmsg == nil then
      error("SQL API error", 3)
   end
   local description = {
      connection = con, query = query, sql_errno = con.sql_errno, sql_state = con.sql_state, sql_errmsg = con.sql_errmsg,
   }
   local hook = sysbench.hooks.sql_error_ignorable
   if con.error == IGNORABLE or con.error == FATAL and type(hook) == "function" and hook(description) then
      description.errcode = sysbench.error.RESTART_EVENT
      error(description, 3)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", con.sql_errno, con.sql_state, con.sql_errmsg), 3)
end

function connection:check_error(rs, query)
   if rs == nil and self.error ~= NONE then
      raise(self, query)
   end
   return rs
end

function connection:query(text)
   if type(text) ~= "string" then
      if type(text) ~= "number" then
         error("bad argument #1 to 'query' (string expected, got " .. type(text) .. ")", 2)
      end
      text = tostring(text)
   end
   local rs = run(self, text)
   if not rs then
      raise(self, text)
   end
   return rs
end

-- The values of the first row.
function connection:query_row(text)
   local rs = run(self, text)
   if not rs then
      raise(self, text)
   end
   if rs.nrows == 0 or rs.nfields == 0 then
      return nil
   end
   return unpack(rs:fetch_row(), 1, rs.nfields)
end

function connection:disconnect()
   if self.is_closed then
      say(false, "attempt to close an already closed connection")
      return true
   end
   self.is_closed = true
   parts.forget(self.ticket)
   request(kind.disconnect, self.number)
   return true
end

function connection:reconnect()
   local done, _, message = request(kind.reconnect, self.number)
   self.is_closed = not done
   if not done then
      say(true, "Connection to database failed: " .. message .. "\n")
      error("assertion failed!", 2)
   end
   return true
end

-- Bulk inserts: rows are collected and sent as one statement when there are enough.

local function send_bulk(con, bulk)
   if bulk.rows == 0 then
      return true
   end
   local text = table.concat(bulk.texts, "", 1, bulk.count)
   bulk.count, bulk.rows, bulk.size = 1, 0, #bulk.texts[1]
   return run(con, text) and true or false
end

function connection:bulk_insert_init(text)
   if is_usable(self) then
      if #text + 1 > LONGEST_BULK then
         say(true, "Query length exceeds the maximum value (" .. LONGEST_BULK .. "), aborting")
         error("db_bulk_insert_init() failed", 2)
      end
      self.bulk = {texts = {text}, count = 1, rows = 0, size = #text}
   end
   return true, "db_bulk_insert_init() failed"
end

function connection:bulk_insert_next(text)
   local bulk = self.bulk
   if is_usable(self) then
      local is_done = bulk ~= nil
      if not bulk then
         say(false, "attempt to call bulk_insert_next() before bulk_insert_init()")
      elseif bulk.size + #text + 1 + (bulk.rows > 0 and 1 or 0) > LONGEST_BULK then
         if bulk.rows == 0 then
            say(true, "Query length exceeds the maximum value (" .. LONGEST_BULK .. "), aborting")
            is_done = false
         else
            is_done = send_bulk(self, bulk)
         end
      end
      if not is_done then
         error("db_bulk_insert_next() failed", 2)
      end
      local texts, count = bulk.texts, bulk.count
      if bulk.rows > 0 then
         count = count + 1
         texts[count] = ","
         bulk.size = bulk.size + 1
      end
      texts[count + 1] = text
      bulk.count, bulk.rows, bulk.size = count + 1, bulk.rows + 1, bulk.size + #text
   end
   return true, "db_bulk_insert_next() failed"
end

function connection:bulk_insert_done()
   if self.bulk and not send_bulk(self, self.bulk) then
      error("db_bulk_insert_done() failed", 2)
   end
   self.bulk = nil
   return true, "db_bulk_insert_done() failed"
end

parts.connection, parts.is_usable, parts.take_answer, parts.run, parts.raise = connection, is_usable, take_answer, run, raise
