-- Requests: how a script uses the server or the event loop. The script runs in a coroutine, the client's life. To make
-- a request, the coroutine yields, and it is resumed with the answer. A request starts with a light userdata, which no
-- script can make. So coroutines that the script itself has made can tell a request, which they pass on, from a value
-- that the script yields.

local native = ...

local raw_resume, raw_yield, create = coroutine.resume, coroutine.yield, coroutine.create
local running = coroutine.running

local is_request = {}
for _, kind in pairs(native.kind) do
   is_request[kind] = true
end

-- The state of the current event. `goes_on` is true if the next event begins at once when this one ends. `has_ended` is
-- true if the event has ended and the event loop does not know it yet; the next request then tells it.
local turn = {goes_on = false, has_ended = false}
native.turn = turn

-- After a yield, LuaJIT continues in a new trace, and after the next yield in another one. The number of traces would
-- grow without end if the functions on the way to the yield were compiled before the loop that calls them. So the way
-- to each yield leads through this loop, which is compiled before the first event: a trace that reaches the loop ends
-- there, and the loop's own trace continues.
local function pass(rounds)
   for _ = 1, rounds do end
end

-- Runs the loop often enough for LuaJIT to compile it.
function native.heat()
   pass(200)
end

-- After a yield, LuaJIT continues the trace only if the trace has called the function that yields, and if the yield
-- returns a fixed number of values.
local function hand_over(kind)
   return raw_yield(kind)
end

-- All requests leave the coroutine through this function.
local function yield(kind)
   pass(1)
   local first, second, third, fourth = hand_over(kind)
   return first, second, third, fourth
end

-- Makes the request that is written in the exchange buffer. Its kind is `usual`, or `first` if the previous event has
-- ended.
function native.ask(usual, first)
   local kind = usual
   if turn.has_ended then
      turn.has_ended, kind = false, first
   end
   return yield(kind)
end

-- Makes a request whose arguments are passed in a table.
function native.request(kind, ...)
   turn.goes_on = false
   if turn.has_ended then
      turn.has_ended = false
      yield(native.kind.ended)
   end
   native.arguments = {...}
   return yield(kind)
end

-- While a state is being closed, finalizers of the script run, but native functions must not be called any more.
for _, name in ipairs {"say", "rand_string", "rand_varstring", "rows", "columns", "use_sql"} do
   local f = native[name]
   native[name] = function(...)
      if not native.is_closed then
         return f(...)
      end
   end
end

-- Coroutines that scripts make.

local function pass_on(co, ok, first, ...)
   if ok and is_request[first] then
      return pass_on(co, raw_resume(co, raw_yield(first, ...)))
   end
   return ok, first, ...
end

function coroutine.resume(co, ...)
   return pass_on(co, raw_resume(co, ...))
end

-- A value that the script yields outside of its own coroutines would reach the event loop, so this is an error.
function coroutine.yield(...)
   if running() == native.life then
      error("attempt to yield across C-call boundary (outside of a coroutine of the script)", 2)
   end
   return raw_yield(...)
end

-- In sysbench, a script is in no coroutine unless it has made one itself.
function coroutine.running()
   local co = running()
   return co ~= native.life and co or nil
end

local function unwrapped(ok, first, ...)
   if not ok then
      error(first, 0)
   end
   return first, ...
end

function coroutine.wrap(f)
   local co = create(f)
   return function(...)
      return unwrapped(pass_on(co, raw_resume(co, ...)))
   end
end

-- The output of a script is written line by line, and in one order for print and io.write.

io.stdout:setvbuf("no")

local write_to_file = io.write

local function write(text)
   if native.is_closed then
      write_to_file(text)
   else
      native.write(text)
   end
end

function print(...)
   local texts = {...}
   for i = 1, select("#", ...) do
      texts[i] = tostring((select(i, ...)))
   end
   write(table.concat(texts, "\t") .. "\n")
end

function io.write(...)
   if io.output() ~= io.stdout then
      return write_to_file(...)
   end
   write(table.concat({...}))
   return io.stdout
end
