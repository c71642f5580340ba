"""The documentation is short and can be read at once: its size, its sentences, its words, and how a page begins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.prose import sentences, words

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "examples" not in path.parts
}
MOST_WORDS = 32_000
MOST_OF_METHOD = 3_000
LONGEST_SENTENCE = 30

OUT = (
    *("goodput", "canary", "canaries", "Hodges-Lehmann", "tell", "tells", "told", "whoever", "nought", "knows of"),
    *("has its way", "so far off", "beat", "books", "desk", "door", "house", "stillborn", "voice"),
)
"""Words that a reader would have to decode."""

ALLOWED = {
    "docs/architecture.md": {"goodput"},
    "docs/engine-events.md": {"goodput"},
    "docs/method.md": {"Hodges-Lehmann"},
}
"""Pages that define such a word, or that describe a key of its name."""

OTHERWISE = ("README.md", "docs/index.md", "docs/decisions/")
"""Pages and folders that begin in their own way."""


def outside_of_code(page: str) -> str:
    """Without the targets of links."""
    text = re.sub(r"^[ ]*```.*?^[ ]*```", "", page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", re.sub(r"\]\([^)]*\)", "]", text))


def test_all_pages_together_are_short():
    assert len(PAGES) > 40
    assert sum(len(page.split()) for page in PAGES.values()) <= MOST_WORDS


def test_the_method_is_the_rule_alone():
    assert len(PAGES["docs/method.md"].split()) <= MOST_OF_METHOD


def test_sentences_are_short():
    found = [(name, text) for name, page in PAGES.items() for text in sentences(page)]
    assert [(name, text) for name, text in found if len(words(text)) > LONGEST_SENTENCE] == []


def test_no_page_needs_words_that_are_out():
    found = [
        (name, word)
        for name, page in PAGES.items()
        for word in {*OUT} - ALLOWED.get(name, set())
        if re.search(rf"\b{word}\b", outside_of_code(page), re.IGNORECASE)
    ]
    assert found == []


def test_no_sentence_begins_with_who_in_place_of_its_subject():
    found = [(name, text) for name, page in PAGES.items() for text in sentences(page)]
    assert [pair for pair in found if pair[1].startswith(("Who ", "Whoever ")) and not pair[1].endswith("?")] == []


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith(OTHERWISE)])
def test_a_page_begins_with_its_readers(name):
    assert re.match(r"# .+\n+For ", PAGES[name])


@pytest.mark.parametrize("name", [name for name in PAGES if name.count("/") == 1 and not name.startswith(OTHERWISE)])
def test_a_page_has_an_example_before_its_first_part(name):
    """But for tutorials, which are examples, and tables of evidence."""
    assert "```" in re.split(r"^## ", PAGES[name], maxsplit=1, flags=re.MULTILINE)[0]


def test_sentences_are_found():
    page = (
        "# Title\n\nOne sentence with `a code span`. Another [with a link](page.md), which\ngoes on! A third?\n\n"
        "- an item\n  of two lines\n- a second item. It goes on.\n\n| a | table |\n\n```sh\nno sentence\n```\n1. done\n"
    )
    assert list(sentences(page)) == [
        "One sentence with `a code span`.",
        "Another with a link, which goes on!",
        "A third?",
        "an item of two lines",
        "a second item.",
        "It goes on.",
        "done",
    ]
    assert len(words("One sentence with `a code span` - 5% and (more).")) == 7
