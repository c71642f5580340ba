"""The campaign behind docs/reliability.md: what pgtrial promises, attacked for hours."""
