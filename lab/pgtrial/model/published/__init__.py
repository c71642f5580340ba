"""What others have published, as data: one TOML file for each article, to be drawn beside a study's own results."""
