"""Makes what is distributed: wheels, the source distribution and Debian packages. Run as `python -m distribution`."""
