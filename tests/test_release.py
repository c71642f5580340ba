"""What a release needs: one version everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pgtrial

ROOT = Path(__file__).parents[1]


def test_lab_engine_changelog_and_citation_have_one_version():
    engine = tomllib.loads((ROOT / "engine" / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    changelog = re.search(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert changelog is not None
    assert citation is not None
    assert {engine, changelog[1], citation[1]} == {pgtrial.__version__}
