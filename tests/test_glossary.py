"""Tests that each word of ours has one entry on the pages of words, and that the code still has the word."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USERS = (ROOT / "docs" / "concepts.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY = ARCHITECTURE.partition("\n## Words\n")[2]
"""The words of the code, which are the last part of the page on the architecture."""
METRIC = "goodput"
"""A word of verdict.json, which is in no name of a type or module."""


def entries(text: str) -> list[str]:
    """Returns the words that a list explains: `- **block**: ...`."""
    return [word.lower() for word in re.findall(r"^- \*\*([^*]+)\*\*:", text, re.MULTILINE)]


def parts(name: str) -> list[str]:
    """Returns the words of which a name consists, in lower case: `LoadPoint`, `load_point` and `load-point` have the
    same two."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names() -> set[str]:
    """Returns the names of all modules, and of the public types of both houses."""
    lab = sorted((ROOT / "lab" / "pgtrial").rglob("*.py"))
    engine = sorted((ROOT / "engine").glob("*/src/**/*.rs"))
    modules = {part for path in (*lab, *engine) for part in path.relative_to(ROOT).with_suffix("").parts}
    classes = {node.name for path in lab for node in ast.walk(ast.parse(path.read_text())) if _is_public_type(node)}
    types = {
        name
        for path in engine
        for name in re.findall(r"^\s*pub(?:\(\w+\))? (?:struct|enum|trait|type) (\w+)", path.read_text(), re.MULTILINE)
    }
    return modules | classes | types


def _is_public_type(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and not node.name.startswith("_")


NAMES = [f" {' '.join(parts(name))} " for name in names()]


def test_no_word_is_explained_twice():
    counts = Counter([*entries(USERS), *entries(GLOSSARY)])
    assert [word for word, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("word", [word for word in entries(GLOSSARY) if word != METRIC])
def test_a_word_of_the_glossary_occurs_in_a_name_of_the_code(word):
    wanted = " ".join(parts(word))
    forms = (wanted, f"{wanted}s", wanted.replace(" ", ""))
    assert any(f" {form} " in name for form in forms for name in NAMES), f"no name has the word {word!r}; remove it"


def test_every_package_and_crate_is_on_the_page():
    crates = [path.parent.name for path in (ROOT / "engine").glob("*/Cargo.toml")]
    packages = [path.parent.name for path in (ROOT / "lab" / "pgtrial").glob("*/__init__.py")]
    explained = re.findall(r"^- `([\w-]+)/?`", ARCHITECTURE, re.MULTILINE) + re.findall(r"`(\w+)/`", ARCHITECTURE)
    assert sorted({*crates, *packages} - {*explained}) == []
