"""Messages of a study that was made by options name options."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from pgtrial.cli import main
from pgtrial.cli.by_options import by_options, reworded
from pgtrial.cli.verdict import in_short
from pgtrial.conduct.progress import BlockEnds, Preparing, ProgressEvent
from pgtrial.report.brief import Brief, Headline, Line

REWORD = by_options(
    ("clients", "jobs", "budget", "data", "values", "max_tries", "cache", "limit"), flags=("allow_busy_client",)
)

MESSAGES = {
    "more clients or threads ([load] clients, jobs), lower": "more clients or threads (--clients, --jobs), lower",
    "raise [load] clients, jobs or max_tries": "raise --clients, --jobs or --max-tries",
    "[verdict] allow_busy_client = true gives the verdict": "--allow-busy-client gives the verdict",
    'set [verdict] budget = "10min" or more': "set --budget 10min or more",
    "set [verdict] budget (--budget) to 2min": "set --budget to 2min",
    "by --values NAME=TABLE.COLUMN ([load] values)": "by --values NAME=TABLE.COLUMN",
    "load it by --data ([load] data)": "load it by --data",
    "[arms.one] leave [load] data out": "one: leave --data out",
    "Raise max_wal_size in [server] until": "Raise max_wal_size by --server until",
    "[load] interleave, clients": "[load] interleave, clients",
    "[load] databases": "[load] databases",
    '[arms.a] [load.suite] cache = "os" restarts it; write cache': "a: --cache os restarts it; write cache",
    "a longer [load.suite] limit": "a longer --limit",
    "[load] suite.limit: write 1s": "--limit: write 1s",
    "its limit ([load.job] limit)": "its limit (--limit)",
}


@pytest.mark.parametrize(("message", "expected"), MESSAGES.items())
def test_a_key_becomes_the_option_that_stands_for_it(message, expected):
    assert REWORD(message) == expected


def test_steps_and_the_verdict_in_short_are_reworded_too():
    heard: list[ProgressEvent] = []
    hear = reworded(heard.append, REWORD)
    ends = BlockEnds(0, look=False, decided=False, running={}, intervals={}, precision=None)
    hear(Preparing("set [load] jobs", stays=True))
    hear(ends)
    assert heard == [Preparing("set --jobs", stays=True), ends]
    headline = Headline("withheld", "off against on", [Line("because", "raise [load] jobs")])
    short = Brief([headline], "goodput", "none", None, None, [], "more ([load] clients, jobs)")
    console = Console(width=200)
    with console.capture() as shown:
        console.print(in_short(short, REWORD))
    assert "raise --jobs" in shown.get()
    assert "more (--clients, --jobs)" in shown.get()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (["schema.sql"], "psql -f schema.sql CONNECTION"),
        (["schema.sql", "shop.dump"], "psql -f schema.sql CONNECTION; pg_restore -d CONNECTION shop.dump"),
        (["host=db2 dbname=shop"], "pg_dump SOURCE | psql CONNECTION"),
    ],
)
def test_data_for_a_given_server_is_answered_with_the_command_that_loads_it(
    tmp_path, monkeypatch, capsys, files, command
):
    monkeypatch.chdir(tmp_path)
    Path("schema.sql").write_text("CREATE TABLE t (n int);\n")
    Path("shop.dump").write_bytes(b"PGDMP" + bytes(600))
    data = [word for file in files for word in ("--data", file)]
    with pytest.raises(SystemExit) as ended:
        main(["compare", "one=jit=on", "two=jit=off", "--server", "host=db1", *data])
    assert ended.value.code == 3
    assert capsys.readouterr().err == (
        "pgtrial: error: the command line: one: data is loaded only into servers that pgtrial makes, and this one is "
        f"given; load it there once ({command}) and leave --data out, or have pgtrial make the server (postgres=18 in "
        "place of its connection string)\n"
    )


def test_data_for_a_pack_is_answered_with_what_takes_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("schema.sql").write_text("CREATE TABLE t (n int);\n")
    with pytest.raises(SystemExit):
        main(["compare", "jit=on", "jit=off", "--data", "schema.sql", "--workload", "pack:queue"])
    assert capsys.readouterr().err.endswith(
        "the pack queue makes tables of its own; leave --data out, or name scripts on your data as --workload in place "
        "of the pack\n"
    )
