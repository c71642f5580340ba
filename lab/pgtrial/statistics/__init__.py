"""Statistics on plain numbers: the rules P8 and P9, by which a study decides, t tests, regimes of a trial, capacities
and sample sizes. All functions are pure: they read no files and draw no random numbers without a fixed seed."""
