"""pgtrial: puts PostgreSQL set-ups on trial and says which is faster, by how much, and how sure that is."""

__version__ = "0.1.0"
