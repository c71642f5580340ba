"""Within a crate of the engine, files import each other in one direction. Between crates the compiler sees to it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = sorted((Path(__file__).parents[2] / "engine").glob("*/src"))
FOR_TESTS = re.compile(r"^( *)#\[cfg\(test\)\]\n(?:\1[^\n]*;\n|.*?^\1\};?\n)", re.M | re.S)
FILE_FOR_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod (\w+);", re.M)
NO_CODE = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'"'""", re.S)
USE = re.compile(r"\buse ([^;]+);")
PATH = re.compile(r"\b\w+(?:::\w+)+")

Module = tuple[str, ...]
"""The path of a module from the root of the crate, as a tuple of names; the root is empty. Each module of the engine is
a file.
"""


def circle_in(source: Path) -> list[Module]:
    """Modules of a crate, each of which imports another one of them; empty if no such circle exists."""
    texts = {module_of(file.relative_to(source)): file.read_text() for file in source.rglob("*.rs")}
    for_tests = {(*module, name) for module, text in texts.items() for name in FILE_FOR_TESTS.findall(text)}
    modules = {module for module in texts if not any(module[: len(test)] == test for test in for_tests)}
    imports = {module: set(imported(module, texts[module], modules)) for module in modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def module_of(file: Path) -> Module:
    names = file.with_suffix("").parts
    return names[:-1] if names[-1] in ("lib", "main", "mod") else names


def imported(module: Module, text: str, modules: Collection[Module]) -> Iterator[Module]:
    """Yields the other modules of the crate that the code of a module uses; code for tests does not count."""
    code = NO_CODE.sub("", FOR_TESTS.sub("", text))
    used = (path for tree in USE.findall(code) for path in paths("".join(tree.split(" as ")[0].split())))
    for path in (*used, *PATH.findall(USE.sub("", code))):
        found = absolute(module, path.split("::"))
        while found and found not in modules:
            found = found[:-1]
        is_of_crate = path.startswith(("crate::", "super::")) or found[: len(module)] == module
        if is_of_crate and found != module:
            yield found


def absolute(module: Module, names: list[str]) -> Module:
    """A path from the root of the crate. One that begins with neither `crate` nor `super` is below the module."""
    if names[0] == "crate":
        return tuple(names[1:])
    while names[0] == "super":
        module, names = module[:-1], names[1:]
    return (*module, *names[names[0] == "self" :])


def paths(tree: str) -> Iterator[str]:
    """Yields the paths of an import: `a::{b, c::{d, e}}` imports `a::b`, `a::c::d` and `a::c::e`."""
    before, brace, within = tree.partition("{")
    if not brace:
        yield tree
        return
    for branch in re.findall(r"[^,{}]+(?:\{(?:[^{}]|\{[^{}]*\})*\})?", within[:-1]):
        yield from paths(before + branch)


def planted(source: Path, **texts: str) -> Path:
    for name, text in texts.items():
        file = source / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return source


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_no_circle_of_files(source):
    assert circle_in(source) == []


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("use super::lower::Thing;", "use crate::room::upper::Other;"),
        ("use crate::room::{lower::{One, Thing}, one};", "pub fn work() -> super::upper::Other {}"),
        ("use super::lower;", "use std::{fmt, io};\nuse super::{\n    middle,\n    upper::Other,\n};"),
    ],
)
def test_a_planted_circle_is_found(tmp_path, upper, lower):
    source = planted(
        tmp_path, lib="mod room;", room__mod="mod lower;\nmod upper;", room__upper=upper, room__lower=lower
    )
    assert set(circle_in(source)) == {("room", "upper"), ("room", "lower")}


def test_a_module_and_one_below_it_are_a_circle(tmp_path):
    source = planted(
        tmp_path, lib="mod room;", room__mod="mod below;\nuse below::work;", room__below="use super::Thing;"
    )
    assert set(circle_in(source)) == {("room",), ("room", "below")}


@pytest.mark.parametrize(
    "lower",
    [
        "#[cfg(test)]\nmod tests {\n    use crate::upper::Other;\n}\n",
        "impl Lower {\n    #[cfg(test)]\n    fn upper() -> crate::upper::Other {\n    }\n}\n",
        "#[cfg(test)]\nuse crate::upper::Other;\n",
        '/// See [`crate::upper::Other`].\nconst TEXT: &str = "crate::upper::Other";',
        "use upper::Other;\n",
    ],
)
def test_tests_texts_and_other_crates_make_no_circle(tmp_path, lower):
    lib, tests = "#[cfg(test)]\nmod tests;\nmod lower;\nmod upper;\n", "use crate::lower::work;"
    source = planted(tmp_path, lib=lib, tests=tests, lower=lower, upper="use crate::lower::Thing;")
    assert circle_in(source) == []
