"""Reads and writes the files that pgtrial keeps: study directories, study files, bundles, histories and the state
directory."""
