-- The drivers of the SQL API. A driver makes connections.

local native = ...

local ffi = require("ffi")
local parts, C, text_of, sql = native.sql, native.C, native.text, sysbench.sql
local request, kind, say = native.request, native.kind, native.say
local no_connection = parts.connections.null

-- The number of sysbench's counter for reads, which the structure of a result contains.
local READ = 1

local structure, no_driver = ffi.typeof("sql_driver"), ffi.cast("sql_driver *", nil)
local drivers = {}

for name, description in pairs {pgsql = "PostgreSQL driver", mysql = "MySQL driver"} do
   local made = ffi.new(structure, 0)
   made.sname, made.lname = name, description
   drivers[name] = {made = made, description = description, pointer = ffi.cast("sql_driver *", made)}
end

-- Returns the driver of this name or, without a name, the driver that the options choose. Returns a null pointer if
-- there is no such driver.
function C.db_create(name)
   name = name == nil and native.driver or type(name) == "cdata" and text_of(name) or tostring(name)
   if not drivers[name] then
      say(true, "invalid database driver name: '" .. name .. "'")
      return no_driver
   end
   native.use_sql()
   return drivers[name].pointer
end

function C.db_destroy()
   return 0
end

local function name_of(driver)
   if not ffi.istype(structure, driver) or driver == nil then
      error("bad argument #1 ('sql_driver *' expected, got " .. type(driver) .. ")", 3)
   end
   return ffi.string(driver.sname)
end

-- Makes a connection. Returns the pointer for the script and the connection's record, or nil if this fails.
local function connect(driver, name)
   if name ~= "pgsql" then
      say(true, native.no_mysql)
      return nil
   end
   native.use_sql()
   parts.close_dropped()
   local number = native.connections
   native.connections = number + 1
   native.exchange_buffer.connection = number
   local done, _, message = request(kind.connect)
   if not done then
      say(true, "Connection to database failed: " .. message .. "\n")
      return nil
   end
   local con = {number = number, error = sql.error.NONE, rows = 0, fields = 0, is_free = true, close = parts.close_connection}
   local pointer
   pointer, con.made = parts.connections.make(number, con)
   con.made.driver = driver
   con.pointer = function() return ffi.cast("sql_connection *", con.made) end
   con.result, con.rs = parts.results.make(number, con)
   con.rs.counter = READ
   con.row = ffi.cast("sql_row *", con.rs.row)
   return pointer, con
end

function C.db_connection_create(driver)
   return connect(driver, name_of(driver)) or no_connection
end

local driver = {}

function driver:name()
   return name_of(self)
end

function driver:connect()
   local pointer, con = connect(self, name_of(self))
   if not pointer then
      error("connection creation failed", 2)
   end
   return parts.close_when_dropped(pointer, con)
end

function sql.driver(name)
   local made = C.db_create(name)
   if made == nil then
      error("failed to initialize the DB driver", 2)
   end
   return made
end

ffi.metatype(structure, {__index = driver, __tostring = function() return "<sql_driver>" end})
ffi.metatype("sql_connection", {__index = parts.connection, __tostring = function() return "<sql_connection>" end})
