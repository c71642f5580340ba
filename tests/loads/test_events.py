"""The types of events have the keys that docs/engine-events.md has; a test of the engine compares that page with its
own types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import pytest

from pgtrial.loads import events

_PAGE = Path(__file__).parents[2] / "docs/engine-events.md"
_COMMON = {"event", "t"}
_OF_THE_LAB = {"hello": {"program"}}
"""What the lab itself writes for client programs."""
_OF_MERGED = {"error": {"machine"}}
"""What the merger adds to errors, which are passed on unread."""
_APART = (events.Summary, events.Times)
"""Types whose own keys have a section, or a word, of the page."""


def documented(section):
    """Returns the keys of a section of the page, each as its path: `plan.clients`."""
    [text] = re.findall(rf"^### {section}\n(.*?)(?=^##)", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    [*tables] = re.split(r"\n\n", text)
    rows = [row for table in tables if table.startswith("| key |") for row in table.splitlines()[2:]]
    paths = set()
    for row in rows:
        cell = row.split(" | ")[0].removeprefix("| ")
        above, colon, below = cell.partition(": ")
        names = re.findall(r"`([^`]+)`", below if colon else above)
        prefix = re.findall(r"`([^`]+)`", above)[0] if colon else ""
        paths |= {f"{prefix}.{name}".lstrip(".") for name in names} | ({prefix} if prefix else set())
    return paths


def typed(kind, prefix=""):
    """Returns the keys of a type, each as its path."""
    for name, hint in get_type_hints(kind).items():
        path = f"{prefix}{name}"
        yield path
        for inner in inside(hint):
            yield from typed(inner, f"{path}.")


def inside(hint: Any):
    """Yields the types of objects in the type of a key, however it is wrapped."""
    if is_typeddict(hint):
        if hint not in _APART:
            yield hint
        return
    for part in get_args(hint):
        yield from inside(part)


@pytest.mark.parametrize("kind", get_args(events.Event), ids=lambda kind: kind.__name__)
def test_an_event_has_no_key_that_its_page_has_not(kind):
    [name] = get_args(get_type_hints(kind)["event"])
    known = documented(name) | _COMMON | _OF_THE_LAB.get(name, set()) | _OF_MERGED.get(name, set())
    assert set(typed(kind)) - known == set()


def test_every_event_of_the_page_has_a_type():
    [text] = re.findall(r"^## Events\n(.*?)^## ", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"^### (.+)$", text, re.MULTILINE)) - {"summary"}
    assert {name for kind in get_args(events.Event) for name in get_args(get_type_hints(kind)["event"])} == named


def test_a_summary_has_no_key_that_its_page_has_not():
    of_ticks = documented("tick") - {"phase", "second", "seconds"}
    assert set(typed(events.Summary)) - documented("summary") - of_ticks == set()


def test_times_have_the_figures_of_the_page():
    [stands_for] = re.findall(r"^\*Percentiles\* stands for (.*)$", _PAGE.read_text(), re.MULTILINE)
    assert set(get_type_hints(events.Times)) - {"median"} == set(re.findall(r"`([^`]+)`", stands_for))
