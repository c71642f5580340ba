"""The machines that take part, and what pgtrial changes on them, written down with its undo before it is made."""
