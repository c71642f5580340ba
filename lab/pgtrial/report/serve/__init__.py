"""Stored and running studies as pages of a local web server, which changes nothing but asks a study to stop."""
