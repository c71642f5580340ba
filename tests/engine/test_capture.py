"""Captures of real servers' logs: every statement that a client sent is there as it was sent, in each format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from pgtrial.servers.workspace import Workspace
from tests.conftest import NEWER_VERSION, VERSIONS, running_clusters
from tests.engine import captures
from tests.engine.capture_program import PACKINGS, capture, captured, packed, refused
from tests.engine.programs import original
from tests.engine.sessions import wait_until_left
from tests.processes import until

TEXTS = [
    "it''s", "a\nb\tc", "", "é 統計 🎻", "$1 and $$", "back\\slash", 'double "quote"', "LOG:  statement: x", "100%",
    "...", "a, $2 = 'b'",
]  # fmt: skip
"""Texts that are hard to read back from a log when they are values of parameters."""

SIMPLE = [
    "select 1",
    "select 'it''s', E'a\\'b', $$dollar '$1' quoted$$, $t$ $$ $t$",
    "select 1.5e3, -7, .5, 0::numeric(10, 2), 'a'::varchar(20)",
    "select now() - interval '1 day', date '2026-11-23', 'x'::text",
    'select 2 as "a 1", 3 as a1 -- a comment\n',
    "select /* trace 17 */ 5 in (1, 2, 3), 5 = any (array[4, 5])",
    "select\n\n\t'é 統計'\n,\n'LOG:  statement: x'",
    "",
    "begin",
    "create temp table t (a numeric(10, 2), b text default 'x')",
    "insert into t values (1, 'a'), (2, NULL)",
    "select a from t order by 1, a desc limit 1 offset 1",
    "prepare p as select $1::int + 4",
    "execute p (38)",
    "commit",
    "select 1; select 'two'",
    "do $f$ begin perform 1; end $f$",
]

STYLES = {
    "all": {"log_statement": "all"},
    "timed": {"log_min_duration_statement": "0"},
    "both": {"log_statement": "all", "log_duration": "on"},
}
"""Sets of settings with which a server logs statements."""

PREFIX = "%m [%p] %q%u@%d/%a "


@dataclass(frozen=True)
class Logs:
    """The logs of a server on which clients have worked."""

    major: int
    directory: Path
    names: tuple[str, ...]
    sent: dict[str, list[tuple[str, str, tuple[str | None, ...]]]]
    """The statements that the clients sent, by the application_name of the client."""


FAILING = [("simple", "select 1 / 0"), ("simple", "selec 2"), ("extended", "select 3 / $1")]
CODES = ["22012", "42601", "22012"]


@pytest.fixture(scope="module", params=[13, 16, VERSIONS[-1], NEWER_VERSION], ids=lambda major: f"pg{major}")
def logs(
    request: pytest.FixtureRequest, workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Logs]:
    major = request.param
    names = {"stderr": "server.log", "csvlog": "server.csv", **({"jsonlog": "server.json"} if major >= 15 else {})}
    settings = {
        "logging_collector": "on",
        "log_destination": ",".join(names),
        "log_filename": "server.log",
        "log_line_prefix": PREFIX,
        "log_connections": "on",
        "log_disconnections": "on",
        "log_parameter_max_length_on_error": "-1",
    }
    with running_clusters(workspace, settings) as running:
        cluster = running(major)
        scripts, sent = tmp_path_factory.mktemp("scripts"), {}
        for style, own_settings in STYLES.items():
            target = cluster.target.with_settings(own_settings)
            sent[style] = work(target, style)
            fail(target, f"failing {style}")
            for mode in ("simple", "extended", "prepared"):
                application = f"pgbench {mode} {style}"
                named = replace(target, extra={**target.extra, "application_name": application})
                sent[application] = pgbench(named, mode, scripts)
        wait_until_collected(cluster, names.values())
        cluster.stop()
        yield Logs(major, cluster.data_directory / "log", tuple(names.values()), sent)


LAST = "the last session"


def wait_until_collected(cluster: Cluster, names: Iterable[str]) -> None:
    """Waits until the logging collector has written what all sessions have logged. A stop of the server kills a
    collector that a busy machine keeps from that.
    """
    wait_until_left(cluster.target)
    cluster.target.connect_as_user(application_name=LAST).close()
    logs = [cluster.data_directory / "log" / name for name in names]
    ended = re.compile(rf"disconnection: .*{LAST}|{LAST}.*disconnection: ")
    until(lambda: all(ended.search(log.read_text()) for log in logs), "the collector has written the last line")


def work(target: Target, application: str) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """Sends statements in each protocol and returns what was sent."""
    sent: list[tuple[str, str, tuple[str | None, ...]]] = []
    with target.connect_as_user(application_name=application) as connection:
        connection.prepare_threshold = 5  # as in applications; the lab's own sessions prepare nothing
        for text in SIMPLE:
            connection.execute(text.encode())
            sent.append(("simple", text, ()))
        for index, text in enumerate([*TEXTS, None]):
            query = f"select %s::text, {index}, 'it''s'"
            connection.execute(query.encode(), [text], prepare=False)
            sent.append(("extended", query.replace("%s", "$1"), (text,)))
            connection.execute(b"select %s::text, %s::int", [text, index], prepare=True)
            sent.append(("prepared", "select $1::text, $2::int", (text, str(index))))
    return sent


def fail(target: Target, application: str) -> None:
    """Send statements that fail, and rows that no log has."""
    with target.connect_as_user(application_name=application) as connection:
        for protocol, text in FAILING:
            with pytest.raises(psycopg.Error):
                connection.execute(text.replace("$1", "%s").encode(), [0] if protocol == "extended" else None)
        connection.execute("create temp table rows (a int)")
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            copy.write_row([1])


def pgbench(target: Target, mode: str, directory: Path) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """Runs a script of pgbench with values that count up and returns the statements that it sent."""
    script = directory / "script.sql"
    script.write_text("\\set n :n + 1\nSELECT :n + 5, 'it''s';\nSELECT :n\n  AS \"n\";\n")
    done = original().run(target, "-n", "-f", str(script), "-M", mode, "-t", "20", "-D", "n=0")
    assert done.status == 0, done.stderr
    texts = ("SELECT {} + 5, 'it''s';", 'SELECT {}\n  AS "n";')
    if mode == "simple":
        return [(mode, text.format(n), ()) for n in range(1, 21) for text in texts]
    return [(mode, text.format("$1"), (str(n),)) for n in range(1, 21) for text in texts]


def own(statements: tuple[captures.Statement, ...]) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """Returns the statements without those that psycopg's connection of the lab sends by itself."""
    return [statement.sent for statement in statements if "set_config" not in statement.text]


@pytest.fixture(params=["server.log", "server.csv", "server.json"])
def log(request: pytest.FixtureRequest, logs: Logs) -> Path:
    if request.param not in logs.names:
        pytest.skip(f"PostgreSQL {logs.major} has no such log")
    return logs.directory / request.param


@pytest.mark.server
def test_every_statement_is_captured_as_it_was_sent(logs: Logs, log: Path, tmp_path: Path) -> None:
    found = captured(tmp_path / "capture", log)
    for application, sent in logs.sent.items():
        session = found.of(application)
        assert own(session.statements) == sent
        assert (session.user, session.database) == ("postgres", "postgres")
        starts = [statement.start_us for statement in session.statements]
        assert starts == sorted(starts)
        assert session.start_us <= starts[0] <= starts[-1] <= session.end_us
        timed = application.split()[-1] != "all"
        assert all((statement.duration_us is not None) == timed for statement in session.statements)
    source = found.about["sources"][0]
    expected = {".log": ("stderr", PREFIX), ".csv": ("csvlog", None), ".json": ("jsonlog", None)}
    assert (source["format"], source.get("prefix")) == expected[log.suffix]
    assert re.match(rf"{logs.major}(\.|beta|rc|devel)", found.about["server_version"])


@pytest.mark.server
def test_a_log_that_is_cut_anywhere_gives_the_statements_before(logs: Logs, log: Path, tmp_path: Path) -> None:
    content = log.read_bytes()
    whole = captured(tmp_path / "whole", log)
    for cut in (len(content) // 3, len(content) // 2, len(content) * 4 // 5):
        part = tmp_path / f"{cut}{log.suffix}"
        part.write_bytes(content[:cut])
        found = captured(tmp_path / str(cut), part)
        sessions = [session for session in found.sessions if session.application in logs.sent]
        assert len(sessions) > 1
        for session in sessions:
            sent = whole.of(str(session.application)).statements
            assert [each.sent for each in session.statements] == [each.sent for each in sent[: len(session.statements)]]
        *finished, last = sorted(sessions, key=lambda session: session.start_us)
        assert last.statements
        for session in finished:
            assert session.statements == whole.of(str(session.application)).statements


@pytest.mark.server
@pytest.mark.parametrize(
    ("prefix", "verbosity"),
    [
        ("%m [%p] ", "default"),
        ("%t:%r:%u@%d:[%p]:", "default"),
        ("%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:", "default"),
        ("%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ", "verbose"),
        ("%t-%c-", "terse"),
    ],
)
def test_prefixes_of_servers_are_guessed(prefix: str, verbosity: str, start_cluster, tmp_path: Path) -> None:
    settings = {"log_line_prefix": prefix, "log_error_verbosity": verbosity, "log_connections": "on"}
    cluster = start_cluster(18, settings=settings)
    sent = work(cluster.target.with_settings(STYLES["all"]), "app")
    cluster.stop()
    found = captured(tmp_path / "capture", cluster.data_directory.with_suffix(".log"))
    sessions = [session for session in found.sessions if own(session.statements) == sent]
    # Terse messages have no details, so that there are no parameters.
    if verbosity == "terse":
        assert found.left_out()["parameters-missing"] > 0
        return
    assert [(session.user, session.database) for session in sessions] == [("postgres", "postgres")]
    assert found.about["sources"][0]["prefix"] == prefix


@pytest.mark.server
def test_failed_statements_are_captured_with_their_errors(log: Path, tmp_path: Path) -> None:
    found = captured(tmp_path / "capture", log)
    codes = ["unstated"] * 3 if log.suffix == ".log" else CODES
    for style in STYLES:
        failed = [each for each in found.of(f"failing {style}").statements if each.failure is not None]
        assert [(each.protocol, each.text) for each in failed] == FAILING
        assert [each.failure for each in failed] == codes
        assert failed[2].parameters == ("0",)
    assert found.about["failed"] == 3 * len(STYLES)
    # `SELECT $1 + 5` of pgbench in two protocols, and one of the failing statements.
    untyped = (2 * 20 + 1) * len(STYLES)
    assert found.left_out() == {"copy-data": len(STYLES), "values-cut": 2 * len(STYLES), "types-unknown": untyped}


def shape(template: dict[str, Any]) -> tuple[str, int, list[str]]:
    """Returns what a template keeps when its values are replaced."""
    return template["protocol"], template["parameters"], re.split(r"'[^']*'|\d+", template["text"])


@pytest.mark.server
def test_tokens_keep_equality_and_length(logs: Logs, tmp_path: Path) -> None:
    log = logs.directory / "server.csv"
    plain, hidden = captured(tmp_path / "plain", log), captured(tmp_path / "hidden", log, "--anonymize")
    assert (hidden.about["anonymized"], plain.about["anonymized"]) == (True, False)
    # The server could not parse one statement, which is replaced as a whole. Other texts differ in literals beside
    # bound parameters alone.
    unparsed = ("simple", 1, ["selec $", ""])
    whole = ("simple", 1, ["$", ""])
    shapes = [whole if found == unparsed else found for found in map(shape, plain.templates)]
    assert sorted(map(shape, hidden.templates)) == sorted(shapes)
    assert hidden.left_out() == plain.left_out() | {"replaced-whole": len(STYLES)}
    assert not (tmp_path / "hidden.plain").exists()
    for application in logs.sent:
        before, after = plain.of(application).statements, hidden.of(application).statements
        others = [replace(each, text="", parameters=(), failure=None) for each in after]
        assert [replace(each, text="", parameters=(), failure=None) for each in before] == others
        assert [each.failure is None for each in before] == [each.failure is None for each in after]
        tokens = dict(zip([each.sent for each in before], [each.sent for each in after], strict=True))
        assert len(set(tokens.values())) == len(tokens)
        for (_, text, parameters), (_, other, others) in tokens.items():
            assert len(text) == len(other)
            assert [value and len(value) for value in parameters] == [value and len(value) for value in others]
    written = b"".join(path.read_bytes() for path in (tmp_path / "hidden").iterdir())
    assert b"quoted" not in written
    assert "統計".encode() not in written


@pytest.mark.server
def test_a_part_is_selected_by_database_and_time(logs: Logs, tmp_path: Path) -> None:
    log = logs.directory / "server.csv"
    assert refused("-o", tmp_path / "none", log, "--database=shop").startswith(
        "no statement of the logs can be used; left out: "
    )
    times = re.findall(r'^([-\d]+ [:.\d]+) UTC,.*"pgbench simple timed"', log.read_text(), re.MULTILINE)
    middle = times[len(times) // 2]
    whole = captured(tmp_path / "whole", log, "--database=postgres")
    early = captured(tmp_path / "early", log, "--to", middle)
    late = captured(tmp_path / "late", log, "--from", f"{middle} UTC")
    counts = [part.about["statements"] for part in (early, late)]
    assert min(counts) > 0
    assert sum(counts) == whole.about["statements"]
    assert early.about["begin_us"] + early.about["span_us"] <= late.about["begin_us"] + 1_000_000


@pytest.mark.server
def test_a_part_is_selected_by_application(logs: Logs, tmp_path: Path) -> None:
    log = logs.directory / "server.csv"
    whole = captured(tmp_path / "whole", log)
    names = {session.application for session in whole.sessions}
    one, other = sorted(name for name in names if name and "pgbench" in name)[:2]
    chosen = captured(tmp_path / "chosen", log, f"--application={one}", f"--application={other}")
    assert {session.application for session in chosen.sessions} == {one, other}
    rest = captured(tmp_path / "rest", log, f"--exclude-application={one}", f"--exclude-application={other}")
    assert {session.application for session in rest.sessions} == names - {one, other}
    assert chosen.about["statements"] + rest.about["statements"] == whole.about["statements"]
    assert "statements of other applications" in refused("-o", tmp_path / "none", log, "--application=absent")


@pytest.mark.server
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_compressed_log_has_the_capture_of_its_text(logs: Logs, log: Path, packing: str, tmp_path: Path) -> None:
    text = log.read_bytes()
    third = len(text) // 3
    plain = captured(tmp_path / "plain", log)
    parts = (text[:third], text[third : 2 * third], text[2 * third :])
    for name, file in (("one", packed(packing, text)), ("several", b"".join(packed(packing, part) for part in parts))):
        (tmp_path / name).write_bytes(file)
        for source, typed in ((tmp_path / name, None), ("-", file)):
            directory = tmp_path / f"{name} {typed is None}"
            done = capture("-o", directory, source, typed=typed)
            assert done.returncode == 0, done.stderr
            found = captures.read(directory)
            assert (found.sessions, found.left_out()) == (plain.sessions, plain.left_out())
            (of_log,) = found.about["sources"]
            assert of_log["packing"] == (packing if name == "one" else f"{packing} in 3 parts")
            assert f"({of_log['packing']}): " in done.stdout.decode()
