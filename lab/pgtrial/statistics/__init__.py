"""Numbers in, intervals out: the rule P8, the paired t test, regimes of a trial, sample sizes. Pure functions."""
