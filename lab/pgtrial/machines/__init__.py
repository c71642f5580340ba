"""Machines: this one, those behind ssh, and Windows; what is read on them, and changes with their undo."""
