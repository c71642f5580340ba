"""Reads and writes what pgtrial keeps on disk: study directories, study files, bundles, histories and the state
directory."""
