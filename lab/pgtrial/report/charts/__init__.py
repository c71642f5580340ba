"""The report's charts, by topic."""
