-- Histograms of a script's own.
function event()
   local ok, histogram = pcall(function() return sysbench.histogram.new(1000, 0.001, 100) end)
   print("new", ok)
   for _, value in ipairs({1, 1, 1, 2, 2, 50}) do
      histogram:update(value)
   end
   histogram:print()
end
