-- The slate (slate.rs): memory that Rust reads and writes too. It has what is asked often, and the answer. `lengths` and `length` are
-- of texts, or else one of the marks below; `columns` is below zero where the server said none.

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

-- Writes a query's text down.
function native.write_text(text)
   local length = #text
   if length <= room.text then
      ffi.copy(slate.text, text, length)
      slate.length = length
   else
      slate.length, native.arguments = ELSEWHERE, {text}
   end
end

-- Writes a value down, its text from `at` on; returns where the next text begins, or nil without room.
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

-- Writes an execution's values down: `count` of them, each as `value_of` has it of a parameter. The first two by
-- themselves, because LuaJIT does not compile a loop for few rounds.
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
