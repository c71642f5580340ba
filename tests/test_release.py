"""Tests of the conditions for a release: one version everywhere, and locked dependencies that fit."""

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


def test_the_fuzz_targets_lock_what_the_engine_needs() -> None:
    """The fuzz targets are a workspace of their own, which `cargo --locked` refuses to build with an outdated lock
    file.
    """
    lock = tomllib.loads((ROOT / "engine" / "fuzz" / "Cargo.lock").read_text())
    locked = {
        package["name"]: {dependency.partition(" ")[0] for dependency in package.get("dependencies", [])}
        for package in lock["package"]
        if "source" not in package
    }
    shared = 0
    for path in ROOT.glob("engine/*/Cargo.toml"):
        manifest = tomllib.loads(path.read_text())
        name = manifest["package"]["name"]
        if name in locked:
            assert manifest.get("dependencies", {}).keys() <= locked[name], name
            shared += 1
    assert shared > 1
