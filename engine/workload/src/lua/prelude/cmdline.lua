-- The options and commands that a script declares.

local native = ...

local cmdline, C, text_of = sysbench.cmdline, native.C, native.text

local kinds = {"NULL", "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE", "MAX"}
for number, name in ipairs(kinds) do
   cmdline["ARG_" .. name] = number - 1
end

-- The mark of a command that every client executes.
cmdline.PARALLEL_COMMAND = true

local kind_of_default = {
   boolean = cmdline.ARG_BOOL,
   string = cmdline.ARG_STRING,
   number = cmdline.ARG_DOUBLE,
   table = cmdline.ARG_LIST,
   ["nil"] = cmdline.ARG_STRING,
}

local set_by_c

-- Declares options with an array of sysbench's C structure `sb_arg_t`.
function C.sb_lua_set_test_args(args, count)
   set_by_c = {}
   for i = 1, tonumber(count) do
      local arg = args[i - 1]
      set_by_c[i] = {
         name = text_of(arg.name), description = text_of(arg.desc), kind = tonumber(arg.type),
         default = arg.value ~= nil and text_of(arg.value) or nil,
      }
   end
   return 0
end

-- Returns the declared options, sorted by name. Each is a table with name, description, kind and default. Returns nil
-- if the script declares none.
function native.option_definitions()
   local declared = cmdline.options
   if declared == nil then
      return set_by_c
   end
   assert(type(declared) == "table", "wrong type for sysbench.cmdline.options: " .. type(declared))
   local found = {}
   for name, definition in pairs(declared) do
      assert(type(name) == "string" and type(definition) == "table", "wrong table structure in sysbench.cmdline.options")
      local description, default, kind = definition[1], definition[2], definition[3]
      assert(description ~= nil, "nil description for option " .. name)
      if type(default) == "table" then
         assert(kind == nil or kind == cmdline.ARG_LIST, "wrong type for list option " .. name)
      end
      kind = kind or kind_of_default[type(default)]
      assert(kind ~= nil, "cannot determine type for option " .. name)
      if type(default) == "boolean" then
         default = default and "on" or "off"
      elseif type(default) == "table" then
         default = table.concat(default, ",")
      end
      found[#found + 1] = {
         name = name, description = tostring(description), kind = kind, default = default ~= nil and tostring(default) or nil,
      }
   end
   table.sort(found, function(one, other) return one.name < other.name end)
   return found
end

function cmdline.read_cmdline_options()
   native.option_definitions()
   return true
end

function cmdline.command_defined(name)
   local commands = cmdline.commands
   return type(commands) == "table" and commands[name] ~= nil and commands[name][1] ~= nil
end

function cmdline.command_parallel(name)
   return cmdline.command_defined(name) and cmdline.commands[name][2] == cmdline.PARALLEL_COMMAND
end

-- Calls a command. Returns false if there is no such command or if the command returns false.
function cmdline.call_command(name)
   if not cmdline.command_defined(name) then
      return false
   end
   local outcome = cmdline.commands[name][1]()
   return outcome == nil or outcome ~= false
end

local placeholders = {
   [cmdline.ARG_BOOL] = "[=on|off]", [cmdline.ARG_INT] = "=N", [cmdline.ARG_SIZE] = "=SIZE", [cmdline.ARG_DOUBLE] = "=N",
   [cmdline.ARG_STRING] = "=STRING", [cmdline.ARG_LIST] = "=[LIST,...]", [cmdline.ARG_FILE] = "=FILENAME",
}

function cmdline.print_test_options()
   local options, widest = native.option_definitions() or {}, 0
   for _, option in ipairs(options) do
      option.shown = "--" .. option.name .. (placeholders[option.kind] or "")
      widest = math.max(widest, #option.shown)
   end
   for _, option in ipairs(options) do
      local default = option.default and " [" .. option.default .. "]" or ""
      print("  " .. option.shown .. string.rep(" ", widest - #option.shown) .. " " .. option.description .. default)
   end
   print("")
end

C.sb_print_test_options = cmdline.print_test_options
