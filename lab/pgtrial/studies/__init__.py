"""The bundled studies, TOML files that `pgtrial run @NAME` runs."""
