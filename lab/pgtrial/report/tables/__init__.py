"""The tables of the report, with a module for each topic."""
