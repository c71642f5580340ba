-- The slate (slate.rs): memory that Rust reads and writes too. It has the frequent requests, and their answers.
-- `lengths` and `length` are lengths of texts, or one of the codes below. `columns` is negative if the server has not
-- sent the number of columns.

local native = ...

local ffi = require("ffi")

local room = native.slate
ffi.cdef(string.format([[
typedef struct {
   double rows;
   double values[%d];
   int32_t lengths[%d], length, columns;
   uint32_t connection, statement;
   uint8_t goes_on;
   char text[%d];
} pgtrial_slate;
]], room.values, room.values, room.text))

local NUMBER, NULL, ELSEWHERE = -1, -2, -3

local slate = ffi.cast("pgtrial_slate *", room.address)
native.slate = slate

-- Writes the text of a query on the slate, or passes it as an argument if it is too long.
function native.write_text(text)
   local length = #text
   if length <= room.text then
      ffi.copy(slate.text, text, length)
      slate.length = length
   else
      slate.length, native.arguments = ELSEWHERE, {text}
   end
end

-- Writes a value on the slate; if it is a text, from byte `at` on. Returns the byte at which the next text begins, or
-- nil if there is no room.
local function write_value(place, value, at)
   if value == nil then
      slate.lengths[place] = NULL
      return at
   elseif type(value) == "number" then
      slate.values[place], slate.lengths[place] = value, NUMBER
      return at
   end
   local length = #value
   if at + length <= room.text then
      ffi.copy(slate.text + at, value, length)
      slate.lengths[place] = length
      return at + length
   end
end

-- Writes the `count` values of an execution on the slate. `value_of` returns the value of a parameter. The first two
-- values are written outside of the loop, because LuaJIT does not compile a loop of few rounds.
function native.write_values(params, count, value_of)
   local at = count <= room.values and 0 or nil
   if at and count > 0 then
      at = write_value(0, value_of(params[1]), at)
   end
   if at and count > 1 then
      at = write_value(1, value_of(params[2]), at)
   end
   for i = 3, count do
      at = at and write_value(i - 1, value_of(params[i]), at)
   end
   if not at then
      local values = {}
      for i = 1, count do
         values[i] = value_of(params[i])
      end
      slate.lengths[0], native.arguments = ELSEWHERE, values
   end
end
