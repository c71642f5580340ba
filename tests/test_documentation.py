"""Tests that the pages of the documentation begin by saying for whom they are, show an example early, are all listed in
the index, and have links that lead somewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pgtrial.verdict.rules import RULES

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "examples" not in path.relative_to(ROOT).parts
}
OTHERWISE = ("README.md", "docs/index.md")
"""The pages to which the rules for the beginning of a page do not apply."""


@pytest.mark.parametrize("name", [name for name in PAGES if not name.startswith(OTHERWISE)])
def test_a_page_begins_with_its_readers(name):
    assert re.match(r"# .+\n+For ", PAGES[name])


@pytest.mark.parametrize("name", [name for name in PAGES if name.count("/") == 1 and not name.startswith(OTHERWISE)])
def test_a_page_has_an_example_before_its_first_part(name):
    """Tutorials are examples as a whole, and published comparisons have their commands after the question."""
    assert "```" in re.split(r"^## ", PAGES[name], maxsplit=1, flags=re.MULTILINE)[0]


LINKED = {**PAGES, **{name: (ROOT / name).read_text() for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}}
"""The pages whose links are followed, by their paths below the root of the project."""


def without_code(page: str) -> str:
    """Returns the text of a page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page, flags=re.DOTALL | re.MULTILINE)


def links_of(name: str) -> list[str]:
    """Returns the targets of a page's links and pictures that lead to files of the project."""
    text = re.sub(r"`[^`\n]*`", "", without_code(LINKED[name]))
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:", target)]


def anchors_of(path: Path) -> set[str]:
    """Returns the anchors that GitHub and MkDocs give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@pytest.mark.parametrize("name", LINKED)
def test_every_link_of_a_page_leads_to_a_file_and_to_a_part_of_it(name):
    for target in links_of(name):
        file, _, anchor = target.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), f"{name} links to {target}"
        assert not anchor or anchor in anchors_of(path), f"{name} links to {target}"


def test_the_index_lists_every_page():
    listed = {(ROOT / "docs" / target).resolve() for target in links_of("docs/index.md")}
    assert [name for name in PAGES if name.startswith("docs/") and (ROOT / name).resolve() not in listed] == [
        "docs/index.md"
    ]


SHOWN = [
    (name, command, output)
    for name, page in PAGES.items()
    for command, output in re.findall(
        r"^```sh\n(pgtrial (?:verdict|sql) [^\n]*docs/examples/\S+)\n```\n\n```text\n(.*?)^```",
        page,
        re.DOTALL | re.MULTILINE,
    )
]
"""The commands on committed studies whose output pages show: the page, the command, and the output on the page."""


def test_pages_show_what_commands_print_of_committed_studies():
    pages = {"docs/concepts.md", "docs/read-a-report.md", "docs/no-verdict.md", "docs/python.md"}
    assert {name for name, *_ in SHOWN} >= pages


@pytest.mark.parametrize(("name", "command", "output"), SHOWN)
def test_the_output_on_a_page_is_what_its_command_prints(name, command, output):
    program, *arguments = shlex.split(command)
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert output.splitlines() == printed, f"{name} shows another output of {command}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_finding_is_on_the_page_of_findings_under_the_words_of_the_report(rule):
    text = " ".join(PAGES["docs/facts.md"].split())
    assert f'`{rule.name}` "{rule.title}"' in text
