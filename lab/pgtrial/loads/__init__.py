"""Makes loads and data: the engine as a process, the fleet, the data sets."""
