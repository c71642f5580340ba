"""What people look at: one HTML file that works offline, its text as Markdown, and a summary for the terminal."""
