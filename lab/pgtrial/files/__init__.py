"""Files of this machine: whether other accounts could exchange them, how they are read, written and locked."""
