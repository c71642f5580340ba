"""Writes the report of a study: as one HTML file that works offline, as Markdown, and as a summary for the terminal."""
