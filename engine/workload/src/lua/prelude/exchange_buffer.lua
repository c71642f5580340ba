-- The exchange buffer (exchange_buffer.rs): memory that Rust reads and writes too. It has the frequent requests, and
-- their answers. `lengths` and `length` are lengths of texts, or one of the codes below. `columns` is negative if the
-- server has not sent the number of columns.

local native = ...

local ffi = require("ffi")

local room = native.exchange_buffer
ffi.cdef(string.format([[
typedef struct {
   double rows;
   double values[%d];
   int32_t lengths[%d], length, columns;
   uint32_t connection, statement;
   uint8_t goes_on;
   char text[%d];
} pgtrial_exchange_buffer;
]], room.values, room.values, room.text))

local NUMBER, NULL, ELSEWHERE = -1, -2, -3

local exchange_buffer = ffi.cast("pgtrial_exchange_buffer *", room.address)
native.exchange_buffer = exchange_buffer

-- Writes the text of a query in the exchange buffer, or passes it as an argument if it is too long.
function native.write_text(text)
   local length = #text
   if length <= room.text then
      ffi.copy(exchange_buffer.text, text, length)
      exchange_buffer.length = length
   else
      exchange_buffer.length, native.arguments = ELSEWHERE, {text}
   end
end

-- Writes a value in the exchange buffer; if it is a text, from byte `at` on. Returns the byte at which the next text
-- begins, or nil if there is no room.
local function write_value(place, value, at)
   if value == nil then
      exchange_buffer.lengths[place] = NULL
      return at
   elseif type(value) == "number" then
      exchange_buffer.values[place], exchange_buffer.lengths[place] = value, NUMBER
      return at
   end
   local length = #value
   if at + length <= room.text then
      ffi.copy(exchange_buffer.text + at, value, length)
      exchange_buffer.lengths[place] = length
      return at + length
   end
end

-- Writes the `count` values of an execution in the exchange buffer. `value_of` returns the value of a parameter. The
-- first two values are written outside of the loop, because LuaJIT does not compile a loop of few rounds.
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
      exchange_buffer.lengths[0], native.arguments = ELSEWHERE, values
   end
end
