"""The outcome of a gate in continuous integration: whether a change passes, and the reports about it as Markdown and as
JUnit XML."""
