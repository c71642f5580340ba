"""Rules over facts and trials: whether the comparison is fair."""
