-- Bulk inserts: rows are collected, and sent as one statement when there are enough of them.

local native = ...

local parts, C, say, text_of = native.sql, native.C, native.say, native.text
local connection, is_usable, run, check_text = parts.connection, parts.is_usable, parts.run, parts.check_text
local find = parts.connections.find

-- The greatest length of the statement in bytes, including a zero byte at its end.
local LONGEST = 512 * 1024

local function is_too_long()
   say(true, "Query length exceeds the maximum value (" .. LONGEST .. "), aborting")
   return 1
end

local function send(con, bulk)
   if bulk.rows == 0 then
      return 0
   end
   local text = table.concat(bulk.texts, "", 1, bulk.count)
   bulk.count, bulk.rows, bulk.size = 1, 0, #bulk.texts[1]
   return run(con, text) and 0 or 1
end

-- Each of the following functions returns 0, or 1 if it failed.

local function init(con, text)
   if is_usable(con) then
      if #text + 1 > LONGEST then
         return is_too_long()
      end
      con.bulk = {texts = {text}, count = 1, rows = 0, size = #text}
   end
   return 0
end

local function next_row(con, text)
   if not is_usable(con) then
      return 0
   end
   local bulk = con.bulk
   if not bulk then
      say(false, "attempt to call bulk_insert_next() before bulk_insert_init()")
      return 1
   elseif bulk.size + #text + 1 + (bulk.rows > 0 and 1 or 0) > LONGEST then
      if bulk.rows == 0 then
         return is_too_long()
      elseif send(con, bulk) ~= 0 then
         return 1
      end
   end
   local texts, count = bulk.texts, bulk.count
   if bulk.rows > 0 then
      count = count + 1
      texts[count] = ","
      bulk.size = bulk.size + 1
   end
   texts[count + 1] = text
   bulk.count, bulk.rows, bulk.size = count + 1, bulk.rows + 1, bulk.size + #text
   return 0
end

local function done(con)
   if con.bulk and send(con, con.bulk) ~= 0 then
      return 1
   end
   con.bulk = nil
   return 0
end

function C.db_bulk_insert_init(con, text, length) return init(find(con), text_of(text, length)) end
function C.db_bulk_insert_next(con, text, length) return next_row(find(con), text_of(text, length)) end
function C.db_bulk_insert_done(con) return done(find(con)) end

function connection:bulk_insert_init(text)
   check_text("bulk_insert_init", "query", text)
   if init(find(self), text) ~= 0 then
      error("db_bulk_insert_init() failed", 2)
   end
   return true, "db_bulk_insert_init() failed"
end

function connection:bulk_insert_next(text)
   check_text("bulk_insert_next", "val", text)
   if next_row(find(self), text) ~= 0 then
      error("db_bulk_insert_next() failed", 2)
   end
   return true, "db_bulk_insert_next() failed"
end

function connection:bulk_insert_done()
   if done(find(self)) ~= 0 then
      error("db_bulk_insert_done() failed", 2)
   end
   return true, "db_bulk_insert_done() failed"
end
