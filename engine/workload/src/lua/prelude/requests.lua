-- Whatever needs the server or the reactor is a request: the coroutine that a client's life is yields it, and is resumed
-- with the answer. A request starts with a light userdata, which no script can make, so that a script's own coroutines
-- can tell a request, which they pass on, from a value that is theirs.

local native = ...

local raw_resume, raw_yield, create = coroutine.resume, coroutine.yield, coroutine.create
local running = coroutine.running

local is_request = {}
for _, kind in pairs(native.kind) do
   is_request[kind] = true
end

-- Of the event under way: whether the next one begins at once if it ends now, and whether it has ended and the event loop
-- does not know that yet. Then the next request says so.
local turn = {goes_on = false, has_ended = false}
native.turn = turn

-- Behind a yield LuaJIT goes on with a new trace, and with another one behind the next, without end where the functions on the
-- way were compiled before the loop that calls them. So the way to each yield leads through a loop that is compiled before
-- the first event: a trace that comes to it ends there, and the loop's own goes on.
local function pass(rounds)
   for _ = 1, rounds do end
end

-- More rounds than it takes to have a loop compiled.
function native.heat()
   pass(200)
end

-- Behind a yield LuaJIT goes on only where the function that yields has been called by the trace, and where what comes back is
-- a fixed number of values.
local function hand_over(kind)
   return raw_yield(kind)
end

-- The only way out of the coroutine.
local function yield(kind)
   pass(1)
   local first, second, third, fourth = hand_over(kind)
   return first, second, third, fourth
end

-- Asks for what is on the slate, by one kind of request, or by another where the event before has ended.
function native.ask(usual, first)
   local kind = usual
   if turn.has_ended then
      turn.has_ended, kind = false, first
   end
   return yield(kind)
end

-- A request with arguments.
function native.request(kind, ...)
   turn.goes_on = false
   if turn.has_ended then
      turn.has_ended = false
      yield(native.kind.ended)
   end
   native.arguments = {...}
   return yield(kind)
end

-- While a state is closed, finalizers of the script run, and native functions are no more.
for _, name in ipairs {"say", "rand_string", "rand_varstring", "rows", "columns", "use_sql"} do
   local f = native[name]
   native[name] = function(...)
      if not native.is_closed then
         return f(...)
      end
   end
end

-- Coroutines of scripts

local function pass_on(co, ok, first, ...)
   if ok and is_request[first] then
      return pass_on(co, raw_resume(co, raw_yield(first, ...)))
   end
   return ok, first, ...
end

function coroutine.resume(co, ...)
   return pass_on(co, raw_resume(co, ...))
end

-- What a script yields outside of its coroutines would come to the reactor.
function coroutine.yield(...)
   if running() == native.life then
      error("attempt to yield across C-call boundary (outside of a coroutine of the script)", 2)
   end
   return raw_yield(...)
end

-- In sysbench nothing runs in a coroutine that the script has not made.
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

-- What is printed goes out line by line, and in one order whether by print or by io.write.

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
