-- The parameters of prepared statements. A script sets them by methods. sysbench's parameters consist of buffers, which
-- are made only when a script asks for one. A script can also bind buffers of its own, which are read at each
-- execution.

local native = ...

local ffi = require("ffi")
local parts, types = native.sql, sysbench.sql.type
local sub, floor, ceil = string.sub, math.floor, math.ceil

-- 2^53: whole numbers above it are not exact in Lua's numbers.
local EXACT = 9007199254740992

local box = ffi.new("int64_t[1]")

-- Returns a whole number in a form that the server can read. A number beyond 53 bits, or a value of the ffi library, is
-- returned as a text of digits.
local function whole(value)
   if type(value) == "number" and value > -EXACT and value < EXACT then
      return value >= 0 and floor(value) or ceil(value)
   end
   box[0] = value
   return (tostring(box[0]):gsub("LL$", ""))
end

-- The functions that set a parameter, for each type.

local function set_whole(self, value)
   if value == nil then
      self.value = nil
   elseif type(value) == "number" and value % 1 == 0 and value > -EXACT and value < EXACT then
      self.value = value
   else
      local ok, text = pcall(whole, value)
      if not ok then
         error(string.format("cannot convert '%s' to 'int64_t'", type(value)), 2)
      end
      self.value = text
   end
   if self.has_buffers then
      self.is_null[0] = value == nil and 1 or 0
      self.buffer[0] = value or 0
   end
end

local function set_double(self, value)
   local number = tonumber(value)
   if number == nil and value ~= nil then
      error(string.format("cannot convert '%s' to 'double'", type(value)), 2)
   end
   self.value = number
   if self.has_buffers then
      self.is_null[0] = value == nil and 1 or 0
      self.buffer[0] = number or 0
   end
end

local function set_string(self, value)
   if value ~= nil then
      if type(value) ~= "string" then
         error(string.format("attempt to get length of local 'value' (a %s value)", type(value)), 2)
      end
      value = #value > self.max_len and sub(value, 1, self.max_len) or value
   end
   self.value = value
   if self.has_buffers then
      self.is_null[0] = value == nil and 1 or 0
      self.data_len[0] = value and #value or 0
      ffi.copy(self.buffer, value or "", value and #value or 0)
   end
end

local function set_drawn_string(self, template)
   if self.type ~= types.VARCHAR then
      error("Unsupported argument type: " .. self.type, 2)
   end
   local text = native.rand_string(template)
   set_string(self, #text > self.max_len and sub(text, 1, self.max_len) or text)
end

-- The buffers of parameters.

local function number_of(digits)
   local number = 0LL
   for digit in string.gmatch(digits, "%d") do
      number = number * 10 + tonumber(digit)
   end
   return sub(digits, 1, 1) == "-" and -number or number
end

local function make_buffers(param)
   local value = param.value
   if param.type == types.VARCHAR then
      param.buffer = ffi.new("char[?]", param.max_len)
   else
      param.buffer = ffi.new(param.type == types.BIGINT and "int64_t[1]" or "double[1]")
      value = type(value) == "string" and number_of(value) or value
   end
   param.data_len, param.is_null, param.has_buffers = ffi.new("unsigned long[1]"), ffi.new("char[1]"), true
   param:set(value)
end

local parameter = {
   __tostring = function() return "<sql_param>" end,
   __index = function(param, name)
      if name == "buffer" or name == "data_len" or name == "is_null" then
         make_buffers(param)
         return rawget(param, name)
      end
   end,
}

-- The C types of buffers, by the type of the parameter.
local pointers = {
   [types.TINYINT] = ffi.typeof("int8_t *"), [types.SMALLINT] = ffi.typeof("int16_t *"),
   [types.INT] = ffi.typeof("int32_t *"), [types.BIGINT] = ffi.typeof("int64_t *"),
   [types.FLOAT] = ffi.typeof("float *"), [types.DOUBLE] = ffi.typeof("double *"),
   [types.CHAR] = ffi.typeof("char *"), [types.VARCHAR] = ffi.typeof("char *"),
}

local is_text = {[types.CHAR] = true, [types.VARCHAR] = true}

-- Makes a parameter from sysbench's C structure `sql_bind`.
local function of_bind(bind)
   local type_ = tonumber(bind.type)
   if not pointers[type_] then
      error("Unsupported argument type: " .. type_, 4)
   end
   return {
      type = type_, has_buffers = true, buffer = ffi.cast(pointers[type_], bind.buffer), data_len = bind.data_len,
      is_null = bind.is_null,
   }
end

-- Returns the value that is sent to the server; nil stands for NULL.
local function value_of(param)
   if not param.has_buffers then
      return param.value
   elseif param.is_null ~= nil and param.is_null[0] ~= 0 then
      return nil
   elseif is_text[param.type] then
      return ffi.string(param.buffer, tonumber(param.data_len[0]))
   end
   local value = param.buffer[0]
   local number = tonumber(value)
   return number > -EXACT and number < EXACT and number or whole(value)
end

-- Makes a parameter of one of three types: whole number, double or text. An error is raised in the caller.
local function create(type_, max_len)
   local made
   if type_ == types.TINYINT or type_ == types.SMALLINT or type_ == types.INT or type_ == types.BIGINT then
      made = {type = types.BIGINT, max_len = 8, value = 0, set = set_whole}
   elseif type_ == types.FLOAT or type_ == types.DOUBLE then
      made = {type = types.DOUBLE, max_len = 8, value = 0, set = set_double}
   elseif type_ == types.CHAR or type_ == types.VARCHAR then
      if type(max_len) ~= "number" then
         error("bad argument #2 to 'bind_create' (the longest value's length expected, got " .. type(max_len) .. ")", 2)
      end
      made = {type = types.VARCHAR, max_len = max_len, value = "", set = set_string}
   else
      error("Unsupported argument type: " .. tostring(type_), 2)
   end
   made.set_rand_str = set_drawn_string
   return setmetatable(made, parameter)
end

parts.create_parameter, parts.parameter_of_bind, parts.value_of = create, of_bind, value_of
