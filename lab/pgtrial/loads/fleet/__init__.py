"""Makes loads with a fleet: several machines, each with one engine, that make a load together."""
