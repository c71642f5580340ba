"""Makes, configures, serves and puts back the servers of the arms."""
