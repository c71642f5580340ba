"""Decides what a study has found: which comparisons (claims) it makes, what each look (planned interim analysis) says
about them, and which findings of the audit forbid a verdict because the comparison is not fair. No other package makes
these decisions."""
