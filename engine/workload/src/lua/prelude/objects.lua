-- Objects of the SQL API. A script holds pointers to sysbench's structures. Behind each pointer there is a record: a
-- Lua table with the data that belong to the object.

local native = ...

local ffi = require("ffi")
local cast, fill, istype, sizeof = ffi.cast, ffi.fill, ffi.istype, ffi.sizeof

-- The structures of sysbench, each with the number of its record behind it.
ffi.cdef [[
typedef struct {
   sql_error_t error; int sql_errno; const char *sql_state; const char *sql_errmsg; sql_driver *driver;
   int number;
} pgtrial_connection;
typedef struct {sql_connection *connection; int number;} pgtrial_statement;
typedef struct {
   sb_counter_type counter; uint32_t nrows; uint32_t nfields; sql_statement *statement; void *ptr; sql_row row;
   int number;
} pgtrial_result;
]]

-- Makes the functions for one kind of objects. `visible` is the type that scripts see, and `own` is the same type with
-- the number of the record.
local function kind_of(visible, own)
   local structure, pointer_type = ffi.typeof(visible), ffi.typeof(visible .. " *")
   local own_type, own_pointer = ffi.typeof(own), ffi.typeof(own .. " *")
   local records, of_pointer = {}, setmetatable({}, {__mode = "kv"})
   -- A structure is used again, but its memory is never freed. So a pointer that a script keeps for too long is never
   -- invalid.
   local spare = {}
   local objects = {null = cast(pointer_type, nil)}

   -- Returns the pointer that a script gets for a record, and the structure itself.
   function objects.make(number, record)
      local made = table.remove(spare) or own_type()
      fill(made, sizeof(own_type))
      made.number = number
      records[number] = record
      local pointer = cast(pointer_type, made)
      of_pointer[pointer] = record
      return pointer, made
   end

   -- Returns the record for another pointer to the same structure. Raises an error if the value is no such pointer.
   local function find_by_number(pointer)
      if not istype(structure, pointer) or pointer == nil then
         local found = type(pointer) == "cdata" and tostring(ffi.typeof(pointer)) or type(pointer)
         error(string.format("bad argument #1 ('%s *' expected, got %s)", visible, found), 4)
      end
      local record = records[cast(own_pointer, pointer).number]
      if not record then
         error("attempt to use a closed '" .. visible .. "'", 4)
      end
      return record
   end

   -- Returns the record of a pointer. An error is raised in the caller's caller.
   function objects.find(pointer)
      local record = of_pointer[pointer]
      return record or find_by_number(pointer)
   end

   -- Forgets a record and its pointer.
   function objects.free(number, made, pointer)
      records[number] = nil
      if pointer ~= nil then
         of_pointer[pointer] = nil
      end
      made.number = -1
      spare[#spare + 1] = made
   end

   return objects
end

-- An object that a script has dropped without closing it is closed some time after the garbage collector has found it.

local dropped = {}

-- Returns the pointer. If the script drops the pointer, its record will be closed.
local function close_when_dropped(pointer, record)
   return ffi.gc(pointer, function()
      dropped[#dropped + 1] = record
   end)
end

local function close_dropped()
   while #dropped > 0 do
      local record = table.remove(dropped)
      record.close(record)
   end
end

native.sql = {
   connections = kind_of("sql_connection", "pgtrial_connection"),
   statements = kind_of("sql_statement", "pgtrial_statement"),
   results = kind_of("sql_result", "pgtrial_result"),
   close_when_dropped = close_when_dropped,
   close_dropped = close_dropped,
}
