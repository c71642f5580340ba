"""Makes the loads that are measured and the data that they run on: with one process of the load engine, with a fleet of
machines, or with a client program of the user."""
