-- sysbench's C interface, with the types and constants that sysbench's own Lua files declare. Scripts find them already
-- declared, as in sysbench, and get the same error from LuaJIT if they declare them again.

local native = ...

local ffi = require("ffi")

ffi.cdef [[
typedef enum {DB_ERROR_NONE, DB_ERROR_IGNORABLE, DB_ERROR_FATAL} sql_error_t;
typedef enum {
   SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT, SB_CNT_MAX
} sb_counter_type;
typedef enum {
   SQL_TYPE_NONE, SQL_TYPE_TINYINT, SQL_TYPE_SMALLINT, SQL_TYPE_INT, SQL_TYPE_BIGINT, SQL_TYPE_FLOAT, SQL_TYPE_DOUBLE,
   SQL_TYPE_TIME, SQL_TYPE_DATE, SQL_TYPE_DATETIME, SQL_TYPE_TIMESTAMP, SQL_TYPE_CHAR, SQL_TYPE_VARCHAR
} sql_bind_type_t;
typedef enum {
   SB_ARG_TYPE_NULL, SB_ARG_TYPE_BOOL, SB_ARG_TYPE_INT, SB_ARG_TYPE_SIZE, SB_ARG_TYPE_DOUBLE, SB_ARG_TYPE_STRING,
   SB_ARG_TYPE_LIST, SB_ARG_TYPE_FILE, SB_ARG_TYPE_MAX
} sb_arg_type_t;

typedef struct {const char *sname; const char *lname; const char opaque[?];} sql_driver;
typedef struct {uint32_t len; const char *ptr;} sql_value;
typedef struct {void *ptr; sql_value *values;} sql_row;
typedef struct {
   sql_error_t error; int sql_errno; const char *sql_state; const char *sql_errmsg; sql_driver *driver;
   const char opaque[?];
} sql_connection;
typedef struct {sql_connection *connection; const char opaque[?];} sql_statement;
typedef struct {
   sb_counter_type counter; uint32_t nrows; uint32_t nfields; sql_statement *statement; void *ptr; sql_row row;
} sql_result;
typedef struct {
   sql_bind_type_t type; void *buffer; unsigned long *data_len; unsigned long max_len; char *is_null;
} sql_bind;

typedef bool sb_opt_validate_t(const char *, const char *);
typedef struct {
   const char *name; const char *desc; const char *value; sb_arg_type_t type; sb_opt_validate_t *validate;
} sb_arg_t;
]]

ffi.metatype("sql_bind", {__tostring = function() return "<sql_bind>" end})

-- The functions that scripts find in `ffi.C` besides those of the C library. The files of the prelude add them here.
native.C = {sb_tls_thread_id = sysbench.tid}

for name, c_function in pairs(native.c_functions) do
   native.C[name] = ffi.cast(c_function.type, c_function.address)
end

-- Returns the text at a pointer as a Lua string: `length` characters or, without a length, up to a zero byte.
function native.text(text, length)
   if type(text) == "string" then
      return text
   elseif text == nil then
      error("bad argument ('const char *' expected, got nil)", 3)
   end
   return length and ffi.string(text, tonumber(length)) or ffi.string(text)
end
