"""The report of a study: one HTML file that works offline, its text as Markdown, and a summary for the terminal."""
