-- Histograms of values between two bounds, with buckets that are equally wide on a logarithmic scale.

local WIDEST_BAR = 40

local histogram = {}
histogram.__index = histogram
histogram.__tostring = function() return "<sb_histogram>" end

function histogram:update(value)
   value = math.min(math.max(value, self.smallest), self.greatest)
   local bucket = math.floor((math.log(value) - self.first) * self.per_unit + 0.5)
   self.counts[bucket] = (self.counts[bucket] or 0) + 1
end

function histogram:print()
   local most = 0
   for bucket = 0, self.size - 1 do
      most = math.max(most, self.counts[bucket] or 0)
   end
   if most == 0 then
      return
   end
   print("       value  ------------- distribution ------------- count")
   for bucket = 0, self.size - 1 do
      local count = self.counts[bucket] or 0
      if count > 0 then
         local bar = string.rep("*", math.floor(count / most * WIDEST_BAR + 0.5))
         print(string.format("%12.3f |%-40s %d", math.exp(bucket / self.per_unit + self.first), bar, count))
      end
   end
end

sysbench.histogram = {}

function sysbench.histogram.new(size, smallest, greatest)
   local first = math.log(smallest)
   return setmetatable({
      size = size, smallest = smallest, greatest = greatest, counts = {},
      first = first, per_unit = (size - 1) / (math.log(greatest) - first),
   }, histogram)
end
