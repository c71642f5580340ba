"""Types for quantities, for study files and for everything that pgtrial stores about a study. This package is the
lowest layer of pgtrial's Python code: it imports no other layer, and it reads no files except tables of its own."""
