"""From stored trials to estimates and verdicts: pure functions without input or output."""
