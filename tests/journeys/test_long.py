"""Journeys of minutes: what README and tutorials say, typed as it stands there, by all defaults, to its end.

`make journeys` runs them, alone on the machine. The commands are read from the pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgtrial.servers.cluster import Cluster
from tests.conftest import StartCluster
from tests.journeys.conftest import Open
from tests.journeys.pages import command_of, commands_of
from tests.journeys.terminal import Done

pytestmark = [pytest.mark.server, pytest.mark.journey, pytest.mark.timeout(900)]

WORDS = r"^(BETTER|NOT WORSE|WORSE|EQUIVALENT|UNDECIDED|WITHHELD) "


def has_ended(done: Done, *statuses: int) -> str:
    """Returns the word of the verdict of a study. Fails if the terminal does not show how the study ended."""
    assert done.status in (statuses or (0,)), done.text
    assert "Traceback" not in done.text
    assert not done.says("fault of pgtrial")
    assert len(re.findall(r"^end: ", done.text, re.MULTILINE)) == 1, done.text
    (word,) = re.findall(WORDS, done.text, re.MULTILINE)
    assert re.search(r"^report: ", done.text, re.MULTILINE), done.text
    blocks = re.search(r"end: .*?(\d+) (?:of \d+ |planned )?blocks", done.joined)
    assert blocks is not None, done.text
    assert int(blocks[1]) >= 8, f"a verdict takes eight blocks: {done.text}"
    return word


def next_of(done: Done) -> str | None:
    """Returns the command that the verdict names as the next one; None where it names none."""
    following = re.search(r"next +(pgtrial run \S+(?: --(?:blocks|more) \w+)?)", done.joined)
    return following[1] if following else None


def test_your_own_query(open_terminal: Open):
    page = "docs/tutorials/own-query.md"
    screen = open_terminal()
    assert screen.run(command_of(page, "shop.sql <<")).status == 0
    done = screen.run(command_of(page, "compare work_mem=1MB"))
    assert done.says("a preliminary block, which does not count, finds the lengths of trials")
    word = has_ended(done)
    following = next_of(done)
    assert word != "UNDECIDED" or re.search("^ +next ", done.text, re.MULTILINE), done.text
    if following is not None:
        screen.begin(following)
        screen.watch(lambda shown: any(line.startswith("now") for line in shown))
        screen.interrupt()
        gone_on = screen.end()
        assert gone_on.status == 130, "it goes on, and does not end at once: " + gone_on.text
        assert "Traceback" not in gone_on.text


@pytest.fixture
def own_server(start_cluster: StartCluster) -> Iterator[Cluster]:
    """Returns a server as somebody has one, with nothing of pgtrial on it."""
    return start_cluster(18)


def test_two_settings_on_your_own_server(open_terminal: Open, own_server: Cluster):
    page = "docs/tutorials/own-server.md"
    reach = {"PGHOST": str(own_server.socket_directory), "PGPORT": str(own_server.port), "PGUSER": "postgres"}
    screen = open_terminal({**reach, "PGDATABASE": "bench", "PATH_OF_SERVER": str(own_server.server.bin)})
    screen.run('export PATH="$PATH:$PATH_OF_SERVER"')
    first, *rest = commands_of(page)
    assert first.startswith("export PGHOST=db1"), "the reader's own server is in the place of db1"
    for command in rest[:-1]:
        assert screen.run(command).status == 0, command
    assert rest[-1] == "pgtrial run work_mem.toml"
    has_ended(screen.run(rest[-1]))


def test_the_demo_and_the_command_that_it_names_as_next(open_terminal: Open):
    screen = open_terminal()
    done = screen.run("pgtrial demo")
    has_ended(done)
    (following,) = re.findall(r"^next: (.*)", done.text, re.MULTILINE)
    if "--server" in following or "pgtrial list" in following:
        return  # a server of somebody runs here, which no test touches
    assert re.match(r"pgtrial compare postgres=\d+ postgres=\d+ ", following), following
    has_ended(screen.run(following))


def test_the_first_example_of_the_readme_survives_its_preliminary_block_and_goes_on_after_ctrl_c(
    open_terminal: Open, tmp_path: Path
):
    screen = open_terminal()
    command = command_of("README.md", "compare 'shared_buffers=128MB'")
    for _ in range(2):
        screen.begin(command)
        screen.watch(lambda shown: any(re.match(r"now +measuring", line) for line in shown), 240)
        screen.watch(lambda shown: any(line.startswith("trial ") for line in shown), 240)
        screen.interrupt()
        done = screen.end()
        assert done.status == 130, done.text
        assert done.says("go on with: pgtrial run results/compare-")
    assert len(list((tmp_path / "results").iterdir())) == 1, "the same line goes on with the same study"


def test_a_gate_to_its_end(open_terminal: Open, tmp_path: Path):
    (tmp_path / "gate.toml").write_text(
        '[load]\nworkload = "sort.sql"\nscale = 2\nclients = 1\nwarmup = "500ms"\nduration = "2s"\n[arms.a]\n[arms.b]\n'
    )
    (tmp_path / "sort.sql").write_text(
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY aid * 7919 % 100003) FROM pgbench_accounts;\n"
    )
    done = open_terminal().run(command_of("docs/gate.md", "pgtrial gate"))
    word = has_ended(done, 0, 2)
    assert word in ("BETTER", "NOT WORSE", "UNDECIDED"), done.text
    assert (done.status == 2) == (word == "UNDECIDED"), done.text
    assert "gate: " in done.text
    for name in ("gate.md", "gate.xml", "gate.tar.xz"):
        assert (tmp_path / name).stat().st_size > 0
