"""What the server says about itself while it serves a trial."""
