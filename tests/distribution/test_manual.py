"""Manual pages: every option of the programs, in macros that groff takes without a word."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from typer.main import get_command

from distribution.manual import manual_pages
from distribution.roff import option, paragraph
from pgtrial.cli import COMMANDS, application
from tests.conftest import require, require_engine

FRONT_ENDS = (
    "pgbench",
    "sysbench",
    "tasks",
    "order-entry",
    "generate",
    "replay",
    "suite",
    "merge",
    "capture",
    "null-server",
)


@pytest.fixture(scope="module")
def pages():
    return manual_pages(require_engine())


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_a_front_end_has_a_page_with_every_option_of_its_help(pages, front_end):
    told = subprocess.run([require_engine(), front_end, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^ {2,4}(?:-., )?--([\w-]+)", told, re.MULTILINE)
    assert options
    written = [line.replace("\\-", "-") for line in pages[f"pgtrial-engine-{front_end}"].splitlines()]
    for name in options:
        assert any(re.match(rf"\.B (-., )?--{name}\b", line) for line in written), name


def test_the_overview_names_every_front_end(pages):
    for front_end in FRONT_ENDS:
        assert f"pgtrial-engine {front_end} ".replace("-", "\\-") in pages["pgtrial-engine"]


def test_the_page_of_the_lab_has_every_command_with_its_options(pages):
    page = pages["pgtrial"].replace("\\-", "-")
    for name, (module, _) in COMMANDS.items():
        part = page.partition(f'.SS "pgtrial {name}"\n')[2].partition(".SS")[0]
        assert part, name
        if module is not None:
            for parameter in get_command(application(name)).commands[name].params:
                assert parameter.opts[-1].lower() in part.lower(), (name, parameter.opts)


def test_groff_formats_every_page_without_a_warning(pages, tmp_path):
    require(shutil.which("groff"), "groff")
    for name, page in pages.items():
        file = tmp_path / f"{name}.1"
        file.write_text(page)
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-rLL=200n", file], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        assert f"{name} - " in done.stdout


def test_words_that_look_like_macros_or_escapes_are_printed_as_they_are():
    assert paragraph(".B is no macro")[1] == "\\&.B is no macro"
    assert option("-x", "a\\n and `-y`\n'quoted'") == [
        ".TP",
        ".B \\-x",
        "a\\en and \\fB\\-y\\fR\n.br\n\\&'quoted'",
    ]
