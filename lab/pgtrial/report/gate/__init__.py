"""The answer of a gate in continuous integration: whether a change passes, and the report as Markdown and JUnit XML."""
