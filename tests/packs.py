"""Packs for tests: a small one that is written to a folder, with files replaced or added."""

from __future__ import annotations

from pathlib import Path

MANIFEST = """
description = "counters that are raised"
transaction = "one counter raised by one"
scale = "10 counters"

[variables]
step = 1

[scripts]
"raise.sql" = 1
"""

FILES = {
    "pack.toml": MANIFEST,
    "schema.sql": "CREATE TABLE counters (id int PRIMARY KEY, value bigint NOT NULL);\n",
    "data.sql": "INSERT INTO counters SELECT i, 0 FROM generate_series(1, 10 * :scale) AS i;\n",
    "raise.sql": "\\set id random(1, 10 * :scale)\nUPDATE counters SET value = value + :step WHERE id = :id;\n",
    "check.sql": "SELECT format('counter %s is at %s', id, value) FROM counters WHERE value < 0 ORDER BY id;\n",
}


def write_pack(folder: Path, **changed: str | None) -> Path:
    """The folder of a pack with these files in place of the usual ones, `pack_toml=...`; None: without that file."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {".".join(name.rsplit("_", 1)): text for name, text in changed.items()}
    for name, text in {**FILES, **named}.items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


QUALITY = MANIFEST + '\n[quality]\nname = "freshness"\ntolerance = 0.1\n'
