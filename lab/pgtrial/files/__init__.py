"""Files of this machine: whether other accounts could exchange them, how they are read, and how they are written."""
