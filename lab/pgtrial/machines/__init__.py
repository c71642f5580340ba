"""The machines that take part in a study: the machine on which pgtrial runs, hosts that are reached by ssh, and hosts
with Windows. The modules read the state of a machine, and make changes to it that can be undone."""
