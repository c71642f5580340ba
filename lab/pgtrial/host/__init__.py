"""What pgtrial changes on this machine: each change is written down with its undo before it is made."""
