"""What a gate of a continuous integration says: whether a change passes, and that as Markdown and JUnit XML."""
