-- The module that scripts get when they require oltp_common and sysbench's own file is not installed: its options, its
-- functions and its commands, for PostgreSQL.

if sysbench.cmdline.command == nil then
   error("Command is required. Supported commands: prepare, run, cleanup, help")
end

local function option(description, default)
   return {description, default}
end

sysbench.cmdline.options = {
   tables = option("Number of tables", 1),
   table_size = option("Number of rows per table", 10000),
   range_size = option("Range size for range SELECT queries", 100),
   range_selects = option("Enable/disable all range SELECT queries", true),
   point_selects = option("Number of point SELECT queries per transaction", 10),
   simple_ranges = option("Number of simple range SELECT queries per transaction", 1),
   sum_ranges = option("Number of SELECT SUM() queries per transaction", 1),
   order_ranges = option("Number of SELECT ORDER BY queries per transaction", 1),
   distinct_ranges = option("Number of SELECT DISTINCT queries per transaction", 1),
   index_updates = option("Number of UPDATE index queries per transaction", 1),
   non_index_updates = option("Number of UPDATE non-index queries per transaction", 1),
   delete_inserts = option("Number of DELETE/INSERT combinations per transaction", 1),
   skip_trx = option("Don't start explicit transactions and execute all queries in the AUTOCOMMIT mode", false),
   secondary = option("Use a secondary index in place of the PRIMARY KEY", false),
   create_secondary = option("Create a secondary index in addition to the PRIMARY KEY", true),
   auto_inc = option("Use AUTO_INCREMENT column as Primary Key (for MySQL), or its alternatives in other DBMS. When "
                        .. "disabled, use client-generated IDs", true),
   mysql_storage_engine = option("Storage engine, if MySQL is used", "innodb"),
   pgsql_variant = option("Use this PostgreSQL variant when running with the PostgreSQL driver. The only currently "
                             .. "supported variant is 'redshift'. When enabled, create_secondary is automatically "
                             .. "disabled, and delete_inserts is set to 0"),
}

-- Making and dropping the tables.

local GROUP = string.rep("#", 11)
local C_TEMPLATE = string.rep(GROUP, 10, "-")
local PAD_TEMPLATE = string.rep(GROUP, 5, "-")

function get_c_value()
   return sysbench.rand.string(C_TEMPLATE)
end

function get_pad_value()
   return sysbench.rand.string(PAD_TEMPLATE)
end

function create_table(drv, con, number)
   local opt = sysbench.opt
   local name, size = "sbtest" .. number, opt.table_size
   local id = "INTEGER NOT NULL"
   if opt.auto_inc then
      id = opt.pgsql_variant == "redshift" and "INTEGER IDENTITY(1,1)" or "SERIAL"
   end

   print(string.format("Creating table '%s'...", name))
   con:query(string.format("CREATE TABLE %s(\n  id %s,\n  k INTEGER DEFAULT '0' NOT NULL,\n"
                              .. "  c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  %s (id)\n)",
                           name, id, opt.secondary and "KEY xid" or "PRIMARY KEY"))

   if size > 0 then
      print(string.format("Inserting %d records into '%s'", size, name))
   end
   con:bulk_insert_init("INSERT INTO " .. name .. (opt.auto_inc and "(k, c, pad) VALUES" or "(id, k, c, pad) VALUES"))
   for i = 1, size do
      local row = string.format("%d, '%s', '%s')", sysbench.rand.default(1, size), get_c_value(), get_pad_value())
      con:bulk_insert_next(opt.auto_inc and "(" .. row or "(" .. i .. ", " .. row)
   end
   con:bulk_insert_done()

   if opt.create_secondary then
      print(string.format("Creating a secondary index on '%s'...", name))
      con:query(string.format("CREATE INDEX k_%d ON %s(k)", number, name))
   end
end

function cmd_prepare()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   for number = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      create_table(drv, con, number)
   end
end

function cmd_prewarm()
   error("prewarm is currently MySQL only")
end

sysbench.cmdline.commands = {
   prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND},
   prewarm = {cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND},
}

function cleanup()
   local con = sysbench.sql.driver():connect()
   for number = 1, sysbench.opt.tables do
      print(string.format("Dropping table 'sbtest%d'...", number))
      con:query("DROP TABLE IF EXISTS sbtest" .. number)
   end
end

-- The statements of each table are in stmt[table][name], and their parameters in param[table][name].

local INT, C, PAD = sysbench.sql.type.INT, {sysbench.sql.type.CHAR, 120}, {sysbench.sql.type.CHAR, 60}

local definitions = {
   point_selects = {"SELECT c FROM sbtest%u WHERE id=?", INT},
   simple_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT},
   sum_ranges = {"SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?", INT, INT},
   order_ranges = {"SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT},
   distinct_ranges = {"SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT},
   index_updates = {"UPDATE sbtest%u SET k=k+1 WHERE id=?", INT},
   non_index_updates = {"UPDATE sbtest%u SET c=? WHERE id=?", C, INT},
   deletes = {"DELETE FROM sbtest%u WHERE id=?", INT},
   inserts = {"INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, C, PAD},
}

function prepare_begin()
   stmt.begin = con:prepare("BEGIN")
end

function prepare_commit()
   stmt.commit = con:prepare("COMMIT")
end

function prepare_for_each_table(key)
   local definition = definitions[key]
   for number = 1, sysbench.opt.tables do
      local prepared, params = con:prepare(string.format(definition[1], number)), {}
      for i = 2, #definition do
         local kind = definition[i]
         params[i - 1] = type(kind) == "table" and prepared:bind_create(kind[1], kind[2]) or prepared:bind_create(kind)
      end
      prepared:bind_param(unpack(params))
      stmt[number][key], param[number][key] = prepared, params
   end
end

for _, key in ipairs {
   "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges", "index_updates", "non_index_updates",
} do
   _G["prepare_" .. key] = function() prepare_for_each_table(key) end
end

function prepare_delete_inserts()
   prepare_for_each_table("deletes")
   prepare_for_each_table("inserts")
end

-- What a client does before and after its events.

function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
   stmt, param = {}, {}
   for number = 1, sysbench.opt.tables do
      stmt[number], param[number] = {}, {}
   end
   prepare_statements()
end

function close_statements()
   for number = 1, sysbench.opt.tables do
      for _, prepared in pairs(stmt[number]) do
         prepared:close()
      end
   end
   if stmt.begin then
      stmt.begin:close()
   end
   if stmt.commit then
      stmt.commit:close()
   end
end

function thread_done()
   close_statements()
   con:disconnect()
end

-- The parts of a transaction.

function begin()
   stmt.begin:execute()
end

function commit()
   stmt.commit:execute()
end

local function any_table()
   return sysbench.rand.uniform(1, sysbench.opt.tables)
end

local function any_id()
   return sysbench.rand.default(1, sysbench.opt.table_size)
end

-- Executes the statement `key` on the table `number` with the given values.
local function execute(number, key, ...)
   local params = param[number][key]
   for i = 1, select("#", ...) do
      local value = select(i, ...)
      if type(value) == "table" then
         params[i]:set_rand_str(value.template)
      else
         params[i]:set(value)
      end
   end
   stmt[number][key]:execute()
end

local any_c, any_pad = {template = C_TEMPLATE}, {template = PAD_TEMPLATE}

-- Executes the statement `key` on a table as often as the option `key` says.
local function repeatedly(key, values)
   local number = any_table()
   for _ = 1, sysbench.opt[key] do
      execute(number, key, values())
   end
end

local function any_range()
   local id = any_id()
   return id, id + sysbench.opt.range_size - 1
end

for key, values in pairs {
   point_selects = any_id,
   simple_ranges = any_range,
   sum_ranges = any_range,
   order_ranges = any_range,
   distinct_ranges = any_range,
   index_updates = any_id,
   non_index_updates = function() return any_c, any_id() end,
} do
   _G["execute_" .. key] = function() repeatedly(key, values) end
end

function execute_delete_inserts()
   local number = any_table()
   for _ = 1, sysbench.opt.delete_inserts do
      local id, k = any_id(), any_id()
      execute(number, "deletes", id)
      execute(number, "inserts", id, k, any_c, any_pad)
   end
end
