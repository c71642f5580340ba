"""The report's tables, by topic."""
