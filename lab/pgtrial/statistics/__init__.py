"""From stored trials to a result: claims, costs, regimes. Pure functions."""
