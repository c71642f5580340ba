"""The plain text for a mailing list: lines of at most 78 columns, and no control characters."""

from pathlib import Path

import pytest

from pgtrial.report.build import report_for_mail
from pgtrial.report.mail import WIDTH, table_lines
from pgtrial.report.table import Table, by_position
from pgtrial.store.bundle import open_study

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.tar.xz"))


@pytest.mark.parametrize("bundle", EXAMPLES, ids=lambda bundle: bundle.name.partition(".")[0])
def test_no_line_is_longer_than_a_mail_has(bundle):
    with open_study(bundle) as study:
        text = report_for_mail(study)
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    rule = next(line for line in lines if set(line) == {"="})
    title = lines[: lines.index(rule)]
    assert len(rule) == max(map(len, title))
    assert " ".join(" ".join(title).split()) == " ".join(study.spec.study.question.split())
    assert "How it was measured" in lines
    assert all(line == line.rstrip() and line.isprintable() for line in lines)


def test_a_table_is_aligned_if_it_fits():
    table = Table("Speeds.", [["old", "1,234"], ["new", "56"]], by_position("arm", "tps", right=[1]))
    assert list(table_lines(table)) == ["Speeds.", "", "arm    tps", "old  1,234", "new     56", ""]


def test_a_wide_table_has_a_block_for_each_row():
    words = " ".join(["word"] * 20)
    table = Table("", [["old", "1", words]], by_position("arm", "tps", "what"))
    first, *others = table_lines(table)
    assert first == "arm: old"
    assert others[0] == "  tps: 1"
    assert others[1].startswith("  what: word word")
    assert " ".join(" ".join(others[1:]).split()) == f"what: {words}"


def test_plans_keep_their_indentation_and_nothing_of_a_name_reaches_the_terminal():
    plans = Table(
        "Plans", [["Limit", "Sort"], ["  \N{NO-BREAK SPACE}-> Sort", ""]], by_position("a\x1b[2J", "b"), is_text=True
    )
    text = list(table_lines(plans))
    assert "    Limit" in text
    assert any(line.startswith("       -> Sort") for line in text)
    assert "\x1b" not in "".join(text)


def test_it_begins_with_the_version_the_machine_the_system_and_the_settings():
    bundle = next(bundle for bundle in EXAMPLES if bundle.name == "memory-cliff.tar.xz")
    with open_study(bundle) as study:
        lines = report_for_mail(study).splitlines()
    assert lines[3:8] == [
        "PostgreSQL 18.6 on AMD EPYC, 2 CPUs, 24 GB, Debian GNU/Linux 12 (bookworm),",
        "  6.18.44-fc-v657",
        "settings: shared_buffers = 64MB, bgwriter_delay = 200ms (lazy) and 20ms",
        "  (eager)",
        "",
    ]
