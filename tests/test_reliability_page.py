"""docs/reliability.md names tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text()


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_each_test_of_the_page_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    assert [f"{file}::{name}" for file, name in named if name not in functions_of(ROOT / file)] == []


def test_each_test_of_the_engine_on_the_page_is_there():
    named = re.findall(r"`(engine/[\w/]+\.rs)`: `(\w+)`", PAGE)
    assert named
    assert [f"{file}: {name}" for file, name in named if f"fn {name}(" not in (ROOT / file).read_text()] == []


def test_each_fuzz_target_is_on_the_page():
    targets = [path.stem for path in (ROOT / "engine" / "fuzz" / "fuzz_targets").glob("*.rs")]
    assert targets
    assert [name for name in targets if f"`{name}`" not in PAGE] == []
