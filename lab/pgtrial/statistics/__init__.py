"""From stored trials to a result: claims, costs, regimes, canaries. Pure functions."""
