local own = { name = "an own module" }

function own.double(n)
   return 2 * n
end

return own
