-- A client's life: what the coroutine of a script runs, and the functions in it that scripts may replace.

local native = ...

local ffi = require("ffi")
local request, kind, say = native.request, native.kind, native.say

-- The prelude answers calls of the functions that sysbench itself exports. All other functions are those of the C
-- library.

local C = native.C
local is_stopped = false

local turn = native.turn

function C.sb_more_events()
   is_stopped = false
   if turn.goes_on then
      turn.goes_on, turn.has_ended = false, true
      return true
   end
   return request(kind.more)
end

function C.sb_event_start()
   is_stopped = false
end

function C.sb_event_stop()
   is_stopped = true
end

-- While a client sleeps, the other clients of its thread can act. If the coroutine cannot yield, the whole thread
-- sleeps.
for name, unit in pairs {usleep = 1e-6, sleep = 1} do
   C[name] = function(time)
      if coroutine.isyieldable() and request(kind.sleep, tonumber(time) * unit) then
         return 0
      end
      return ffi.C[name](time)
   end
end

local own = {}
for name, value in pairs(ffi) do
   own[name] = value
end
own.C = setmetatable(C, {__index = ffi.C})
package.loaded.ffi = own
_G.ffi = own

-- Runs one event after another, until the last one has ended or an error occurs. If `is_restarted` is true, the first
-- event has begun already. LuaJIT compiles this loop only if it contains neither another loop nor `pcall`.
local function events(thread_id, is_restarted)
   while is_restarted or C.sb_more_events(thread_id) do
      if not is_restarted then
         C.sb_event_start(thread_id)
      end
      is_restarted = false
      if event(thread_id) then
         break
      end
      C.sb_event_stop(thread_id)
   end
end

function thread_run(thread_id)
   local is_done, problem = pcall(events, thread_id, false)
   while not is_done do
      if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then
         error(problem, 0)
      end
      local hook = sysbench.hooks.before_restart_event
      if hook then
         hook(problem)
      end
      is_done, problem = pcall(events, thread_id, true)
   end
end

-- LuaJIT's message about a request that it cannot pass on.
local CANNOT_WAIT = "attempt to yield across C-call boundary"

-- Returns the message about an error that a function has raised.
local function failure(name, problem)
   local text = (type(problem) == "string" or type(problem) == "number") and tostring(problem) or "(not a string)"
   if string.sub(text, -#CANNOT_WAIT) == CANNOT_WAIT then
      text = text .. ": the server cannot be asked within a function that Lua's library calls back (string.gsub, table.sort, ...)"
   end
   return name and string.format("`%s' function failed: %s", name, text) or text
end

local function fail(name, problem)
   request(kind.fatal, failure(name, problem))
end

local function attempt(name, f, ...)
   local is_done, outcome = pcall(f, ...)
   if not is_done then
      fail(name, outcome)
   end
   return outcome
end

-- Runs the top level of the script. It does not see the options, which are set after it.
local function begin(script, argument)
   native.life = coroutine.running()
   local is_done, problem = pcall(script, argument)
   if not is_done then
      fail(nil, problem)
   end
   native.export_options()
   native.heat()
end

-- Returns the function for the coroutine of a client that runs events.
function native.events(script, argument)
   return function()
      local tid = sysbench.tid
      begin(script, argument)
      if thread_init ~= nil then
         attempt("thread_init", thread_init, tid)
      end
      request(kind.ready)
      attempt("thread_run", thread_run, tid)
      request(kind.left, is_stopped)
      if thread_done ~= nil then
         local is_done, problem = pcall(thread_done, tid)
         if not is_done then
            say(true, failure("thread_done", problem))
         end
      end
   end
end

local function perform(name)
   if not sysbench.cmdline.command_defined(name) then
      attempt(name, _G[name])
   elseif not attempt("sysbench.cmdline.call_command", sysbench.cmdline.call_command, name) then
      request(kind.fatal)
   end
end

-- Returns the function for the coroutine of a client that executes a command, while other clients execute it too.
function native.command(script, argument, name)
   return function()
      begin(script, argument)
      perform(name)
   end
end

-- Returns the function for the coroutine of a main thread's state that executes a command.
function native.perform(name)
   return function()
      native.life = coroutine.running()
      perform(name)
   end
end

-- Returns the function for the coroutine of a main thread's state that runs the script's top level. The function
-- returns an error message, or nil.
function native.load(script, argument)
   return function()
      native.life = coroutine.running()
      local is_done, problem = pcall(script, argument)
      return not is_done and failure(nil, problem) or nil
   end
end

-- Returns the function for the coroutine of a main thread's state that calls a function of the script. It returns an
-- error message, or nil.
function native.call(name, f, argument)
   return function()
      native.life = coroutine.running()
      local is_done, problem = pcall(f, argument)
      return not is_done and failure(name, problem) or nil
   end
end
