"""Numbers in, intervals out: the rules P8 and P9, paired t test, regimes of a trial, sample sizes. Pure functions."""
