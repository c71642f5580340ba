-- The API of sysbench 0.5: global functions that use one connection, which is made when it is first needed.

local native = ...

local sql = native.sql
local types = sysbench.sql.type
local IGNORABLE = sysbench.sql.error.IGNORABLE

local db = {DB_ERROR_NONE = 0, DB_ERROR_RESTART_TRANSACTION = 1, DB_ERROR_FAILED = 2}
sysbench.db = db

local current

-- The functions below raise errors in the script: in the caller of the API function that calls them.

local function connect(level)
   local driver = native.C.db_create(nil)
   db_driver = driver:name()
   local is_done, made = pcall(driver.connect, driver)
   if not is_done then
      error("Failed to connect to the database", level + 1)
   end
   current = made
end

local function connected()
   if not current then
      connect(3)
   end
   return current
end

local function in_use()
   if not current then
      error("Uninitialized database connection", 3)
   end
   return current
end

local function bulk(con, name, text)
   if not pcall(con[name], con, text) then
      error("db_" .. name .. "() failed", 3)
   end
end

-- Returns the text that a script passes to the function `name`. Numbers are accepted as texts.
local function text_given(name, text)
   if type(text) ~= "string" and type(text) ~= "number" then
      error(string.format("bad argument #1 to '%s' (string expected, got %s)", name, type(text)), 3)
   end
   return tostring(text)
end

local function restart_event()
   error({errcode = sysbench.error.RESTART_EVENT}, 0)
end

function db.connect()
   connect(2)
end

function db.disconnect()
   if current then
      current:disconnect()
      current = nil
   end
end

function db.query(text)
   local con = sql.connections.find(connected())
   text = text_given("db_query", text)
   if not sql.run(con, text) then
      if con.error == IGNORABLE then
         restart_event()
      end
      error("db_query() failed", 2)
   end
end

function db.bulk_insert_init(text)
   bulk(connected(), "bulk_insert_init", text_given("db_bulk_insert_init", text))
end

function db.bulk_insert_next(text)
   bulk(in_use(), "bulk_insert_next", text_given("db_bulk_insert_next", text))
end

-- As in sysbench, a failure of the statement is printed, but is not an error of the script.
function db.bulk_insert_done()
   native.C.db_bulk_insert_done(in_use())
end

function db.prepare(text)
   local con = connected()
   local ok, stmt = pcall(con.prepare, con, text_given("db_prepare", text))
   if not ok then
      error("db_prepare() failed", 2)
   end
   return stmt
end

local kinds = {number = types.INT, string = types.VARCHAR}

-- The parameters get the values that the table has when the statement is executed. As in sysbench, the error of a
-- failed binding is only the last key of the table, without a position in the script.
function db.bind_param(stmt, values)
   in_use()
   if type(values) ~= "table" then
      error("table was expected", 2)
   end
   local params, last = {}, nil
   for i, value in pairs(values) do
      if not kinds[type(value)] then
         error("Unsupported variable type: " .. type(value), 0)
      end
      params[i], last = {type = kinds[type(value)]}, i
   end
   if #params == 0 then
      error("table is empty", 2)
   end
   local mine = sql.statements.find(stmt)
   mine.values = values
   if sql.bind(mine, params) ~= 0 then
      error(tostring(last), 0)
   end
end

function db.bind_result(stmt, values)
   in_use()
   if type(values) ~= "table" then
      error("table was expected", 2)
   end
end

function db.execute(pointer)
   local con, stmt = sql.connections.find(in_use()), sql.statements.find(pointer)
   if stmt.holes > 0 and not stmt.values then
      error("db_execute() failed: the parameters of the statement are not bound", 2)
   end
   for i, mine in ipairs(stmt.params) do
      mine.value = stmt.values[i]
      if mine.value ~= nil and mine.type == types.VARCHAR then
         mine.value = tostring(mine.value)
      end
   end
   local rs = sql.execute(stmt)
   if not rs and con.error == IGNORABLE then
      restart_event()
   end
   return rs
end

function db.store_results()
   in_use()
end

function db.free_results(rs)
   in_use()
   if rs ~= nil then
      sql.forget_result(sql.results.find(rs))
   end
end

function db.close(stmt)
   in_use()
   stmt:close()
end

for name, value in pairs(db) do
   _G[type(value) == "function" and "db_" .. name or name] = value
end

local rand = sysbench.rand

function sb_rnd()
   return tonumber(rand.uniform_uint64() % 4294967296)
end

sb_rand = rand.default
sb_rand_str = rand.string
sb_rand_uniform = rand.uniform
sb_rand_gaussian = rand.gaussian
sb_rand_special = rand.special

function sb_rand_uniq(smallest, greatest)
   smallest, greatest = smallest or 0, greatest or 4294967295
   local drawn
   repeat
      drawn = rand.unique()
   until drawn >= smallest and drawn <= greatest
   return drawn
end

thread_id = sysbench.tid
test = sysbench.cmdline.script_path

mysql_table_engine = "innodb"
myisam_max_rows = 1000000
