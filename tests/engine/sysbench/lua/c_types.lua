-- The types and constants of sysbench's C interface: sizes, places of fields, values, and second declarations.
local ffi = require("ffi")

local structures = {
   sql_driver = {"sname", "lname"},
   sql_value = {"len", "ptr"},
   sql_row = {"ptr", "values"},
   sql_connection = {"error", "sql_errno", "sql_state", "sql_errmsg", "driver"},
   sql_statement = {"connection"},
   sql_result = {"counter", "nrows", "nfields", "statement", "ptr", "row"},
   sql_bind = {"type", "buffer", "data_len", "max_len", "is_null"},
   sb_arg_t = {"name", "desc", "value", "type", "validate"},
}

local constants = {
   "DB_ERROR_NONE", "DB_ERROR_IGNORABLE", "DB_ERROR_FATAL", "SB_CNT_OTHER", "SB_CNT_READ", "SB_CNT_WRITE", "SB_CNT_TRX",
   "SB_CNT_ERROR", "SB_CNT_RECONNECT", "SB_CNT_MAX", "SQL_TYPE_NONE", "SQL_TYPE_TINYINT", "SQL_TYPE_SMALLINT", "SQL_TYPE_INT",
   "SQL_TYPE_BIGINT", "SQL_TYPE_FLOAT", "SQL_TYPE_DOUBLE", "SQL_TYPE_TIME", "SQL_TYPE_DATE", "SQL_TYPE_DATETIME",
   "SQL_TYPE_TIMESTAMP", "SQL_TYPE_CHAR", "SQL_TYPE_VARCHAR", "SB_ARG_TYPE_NULL", "SB_ARG_TYPE_BOOL", "SB_ARG_TYPE_INT",
   "SB_ARG_TYPE_SIZE", "SB_ARG_TYPE_DOUBLE", "SB_ARG_TYPE_STRING", "SB_ARG_TYPE_LIST", "SB_ARG_TYPE_FILE", "SB_ARG_TYPE_MAX",
}

local declarations = {
   "void sb_counter_inc(int, sb_counter_type);",
   "uint64_t sb_counter_val(int, sb_counter_type);",
   "void sb_event_start(int thread_id); void sb_event_stop(int thread_id); bool sb_more_events(int thread_id);",
   "typedef struct histogram sb_histogram_t;",
   "typedef struct { const char *sname; } sql_driver;",
   "typedef enum { SB_CNT_OTHER, SB_CNT_READ } sb_counter_type;",
   "typedef enum { DB_ERROR_NONE } sql_error_t;",
   "sql_result *db_query(sql_connection *con, const char *query, size_t len);",
   "typedef struct { sql_error_t e; sql_bind_type_t t; sb_arg_type_t a; sb_opt_validate_t *v; sb_histogram_t *h; } mine;",
   "typedef uint32_t useconds_t; int usleep(useconds_t useconds);",
   "void no_such(sb_no_such_type);",
}

function event()
   local names = {}
   for name in pairs(structures) do
      names[#names + 1] = name
   end
   table.sort(names)
   for _, name in ipairs(names) do
      local ok, size = pcall(ffi.sizeof, name)
      if not ok then
         size = ffi.sizeof(name, 0)
      end
      local fields = {}
      for i, field in ipairs(structures[name]) do
         fields[i] = field .. " " .. ffi.offsetof(name, field)
      end
      print(name, size, table.concat(fields, ", "))
   end
   for _, name in ipairs(constants) do
      print(name, ffi.C[name])
   end
   for _, declaration in ipairs(declarations) do
      print(declaration, pcall(ffi.cdef, declaration))
   end
   print("not declared", pcall(function() return ffi.C.no_such end))
   print("of the library", ffi.C.usleep(1))
   print("bind", tostring(ffi.new("sql_bind")))
end
