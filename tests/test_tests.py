"""Tests of the source code of all tests: a test sets no private name, and every test asserts something."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCES = sorted(TESTS.rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def called(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yields the calls below a node of the syntax tree, each with the last part of the called name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute | ast.Name):
            yield each.func.attr if isinstance(each.func, ast.Attribute) else each.func.id, each


def private_names_set(module: ast.Module) -> list[str]:
    """Returns the lines that set a private name with `x._y = 1` or `setattr`, also where the name is known only at run
    time. A test that needs such a line should set an argument, a file or a machine instead.
    """
    found = []
    for name, call in called(module):
        if name in ("setattr", "delattr") and isinstance(call.func, ast.Attribute):
            target = call.args[0]
            named = target if isinstance(target, ast.Constant) else call.args[1]
            text = named.value if isinstance(named, ast.Constant) else None
            if not isinstance(text, str) or text.rpartition(".")[2].startswith("_"):
                found.append(f"line {call.lineno}: {ast.unparse(call)}")
    assigned = [(node, each) for node in ast.walk(module) if isinstance(node, ast.Assign) for each in node.targets]
    for node, target in assigned:
        if isinstance(target, ast.Attribute) and target.attr.startswith("_") and ast.unparse(target.value) != "self":
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def asserts(function: Function) -> bool:
    """True if the function itself has an assertion, or expects an error or a warning."""
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        name in ("raises", "warns", "fail") for name, _ in called(function)
    )


def functions(path: Path) -> dict[str, Function]:
    """Returns the functions of a file, and the methods of its classes, by their names."""
    return {node.name: node for node in ast.walk(parsed(path)) if isinstance(node, Function)}


def helpers(path: Path) -> dict[str, Function]:
    """Returns the functions that a test file defines or imports from other files of the tests, by their names in the
    file.
    """
    known = functions(path)
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            source = TESTS.parent / f"{(node.module or '').replace('.', '/')}.py"
            there = functions(source) if source.is_file() else {}
            known |= {each.asname or each.name: there[each.name] for each in node.names if each.name in there}
    return known


def without_assertion(path: Path) -> list[str]:
    """Returns the tests of a file that assert nothing, neither themselves nor in a helper that they call."""
    known = helpers(path)
    return [
        name
        for name, test in functions(path).items()
        if name.startswith("test_")
        and not asserts(test)
        and not any(helper in known and asserts(known[helper]) for helper, _ in called(test))
    ]


def test_no_test_sets_a_private_name():
    found = {str(path.relative_to(TESTS)): private_names_set(parsed(path)) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_test_asserts_something():
    found = {str(path.relative_to(TESTS)): without_assertion(path) for path in SOURCES}
    assert {path: tests for path, tests in found.items() if tests} == {}


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr(module, "_LIMIT_S", 1)',
        'monkeypatch.setattr("pgtrial.module._LIMIT_S", 1)',
        "patch.setattr(module, name, 1)",
        "module._limit = 1",
    ],
)
def test_a_private_name_that_is_set_is_found(line):
    assert len(private_names_set(ast.parse(line))) == 1


def test_a_test_without_an_assertion_is_found(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "def helps():\n    assert True\n"
        "def looks():\n    return 1\n"
        "def test_by_a_helper():\n    helps()\n"
        "def test_by_an_error():\n    with pytest.raises(ValueError): looks()\n"
        "def test_by_nothing():\n    looks()\n"
    )
    assert without_assertion(tmp_path / "test_it.py") == ["test_by_nothing"]
