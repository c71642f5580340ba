return { name = ... }
