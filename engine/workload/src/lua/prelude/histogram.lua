-- Histograms of values between two bounds. The buckets are equally wide on a logarithmic scale.

local native = ...

local ffi = require("ffi")
local C = native.C

local WIDEST_BAR = 40

ffi.cdef [[
typedef struct histogram {
   uint32_t size; double smallest; double greatest; double first; double per_unit; uint32_t counts[?];
} sb_histogram_t;
]]

local histogram_type = ffi.typeof("sb_histogram_t")

function C.sb_histogram_new(size, smallest, greatest)
   local made = histogram_type(size)
   made.size, made.smallest, made.greatest, made.first = size, smallest, greatest, math.log(smallest)
   made.per_unit = (size - 1) / (math.log(greatest) - made.first)
   return made
end

-- Does nothing, because Lua's garbage collector frees a histogram.
function C.sb_histogram_delete() end

function C.sb_histogram_update(histogram, value)
   value = math.min(math.max(value, histogram.smallest), histogram.greatest)
   local bucket = math.floor((math.log(value) - histogram.first) * histogram.per_unit + 0.5)
   histogram.counts[bucket] = histogram.counts[bucket] + 1
end

function C.sb_histogram_print(histogram)
   local most = 0
   for bucket = 0, histogram.size - 1 do
      most = math.max(most, histogram.counts[bucket])
   end
   if most == 0 then
      return
   end
   print("       value  ------------- distribution ------------- count")
   for bucket = 0, histogram.size - 1 do
      local count = histogram.counts[bucket]
      if count > 0 then
         local bar = string.rep("*", math.floor(count / most * WIDEST_BAR + 0.5))
         print(string.format("%12.3f |%-40s %d", math.exp(bucket / histogram.per_unit + histogram.first), bar, count))
      end
   end
end

ffi.metatype(histogram_type, {
   __index = {update = C.sb_histogram_update, print = C.sb_histogram_print},
   __tostring = function() return "<sb_histogram>" end,
})

sysbench.histogram = {new = C.sb_histogram_new}
