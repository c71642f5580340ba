-- Scripts hold pointers to sysbench's structures. Behind each pointer there is a record: a table with what belongs to it here.

local native = ...

local ffi = require("ffi")
local cast, fill, istype, sizeof = ffi.cast, ffi.fill, ffi.istype, ffi.sizeof

-- The structures, each followed by the number of its record.
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

-- Objects of one kind: `visible` is the type that scripts have, `own` the same with a number.
local function kind_of(visible, own)
   local structure, pointer_type = ffi.typeof(visible), ffi.typeof(visible .. " *")
   local own_type, own_pointer = ffi.typeof(own), ffi.typeof(own .. " *")
   local records, of_pointer = {}, setmetatable({}, {__mode = "kv"})
   -- A structure is used again and never freed: a pointer that a script has kept for too long points to something.
   local spare = {}
   local objects = {null = cast(pointer_type, nil)}

   -- The pointer that a script gets for a record, and the structure itself.
   function objects.make(number, record)
      local made = table.remove(spare) or own_type()
      fill(made, sizeof(own_type))
      made.number = number
      records[number] = record
      local pointer = cast(pointer_type, made)
      of_pointer[pointer] = record
      return pointer, made
   end

   -- The record of a pointer that is no table's key: another one to the same structure, or none.
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

   -- The record of a pointer. An error is that of the caller's caller.
   function objects.find(pointer)
      local record = of_pointer[pointer]
      return record or find_by_number(pointer)
   end

   -- The record is no more; neither is the pointer.
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

-- What a script has dropped without closing it is closed when the collector finds out.

local dropped = {}

-- The pointer, whose record is closed if the script drops it.
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
