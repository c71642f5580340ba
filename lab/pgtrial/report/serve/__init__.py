"""A local web server that shows stored and running studies. It changes nothing, except that it can ask a running study
to stop."""
