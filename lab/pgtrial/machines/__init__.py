"""The machines that take part in a study: this one, hosts reached by ssh, and hosts with Windows. Reads their state,
and makes changes that can be undone."""
