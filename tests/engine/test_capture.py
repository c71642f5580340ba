"""Captures of real servers' logs: every statement that a client sent is there as it was sent, in each format."""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.workspace import Workspace
from tests.conftest import require, require_engine, running_clusters
from tests.engine import captures
from tests.engine.captures import Capture
from tests.engine.programs import original

TEXTS = [
    "it''s", "a\nb\tc", "", "é 統計 🎻", "$1 and $$", "back\\slash", 'double "quote"', "LOG:  statement: x", "100%",
    "...", "a, $2 = 'b'",
]  # fmt: skip
"""Values that are hard to read back."""

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
"""How statements may be logged."""

PREFIX = "%m [%p] %q%u@%d/%a "


@dataclass(frozen=True)
class Logs:
    """The logs of a server on which clients have worked."""

    major: int
    directory: Path
    names: tuple[str, ...]
    sent: dict[str, list[tuple[str, str, tuple[str | None, ...]]]]
    """What clients sent, by application."""


def capture(*args: object, typed: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [str(require_engine()), "capture", *map(str, args)]
    return subprocess.run(command, check=False, capture_output=True, input=typed)


def captured(directory: Path, *args: object) -> Capture:
    """A capture that succeeds."""
    done = capture("-o", directory, *args)
    assert done.returncode == 0, done.stderr.decode()
    return captures.read(directory)


def refused(*args: object, typed: bytes | None = None) -> str:
    """The one line by which a capture is refused."""
    done = capture(*args, typed=typed)
    line = done.stderr.decode()
    assert (done.returncode, done.stdout, line.count("\n")) == (3, b"", 1), line
    return line.removeprefix("pgtrial-engine capture: error: ").rstrip("\n")


FAILING = [("simple", "select 1 / 0"), ("simple", "selec 2"), ("extended", "select 3 / $1")]
CODES = ["22012", "42601", "22012"]


@pytest.fixture(scope="module", params=[13, 16, 18], ids=lambda major: f"pg{major}")
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
        cluster.stop()
        yield Logs(major, cluster.data_directory / "log", tuple(names.values()), sent)


def work(target: Target, application: str) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """Send statements in each protocol; what was sent."""
    sent: list[tuple[str, str, tuple[str | None, ...]]] = []
    with target.connect(application_name=application) as connection:
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
    with target.connect(application_name=application) as connection:
        for protocol, text in FAILING:
            with pytest.raises(psycopg.Error):
                connection.execute(text.replace("$1", "%s").encode(), [0] if protocol == "extended" else None)
        connection.execute("create temp table rows (a int)")
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            copy.write_row([1])


def pgbench(target: Target, mode: str, directory: Path) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """A script of pgbench with values that count up; what it sent."""
    script = directory / "script.sql"
    script.write_text("\\set n :n + 1\nSELECT :n + 5, 'it''s';\nSELECT :n\n  AS \"n\";\n")
    done = original().run(target, "-n", "-f", str(script), "-M", mode, "-t", "20", "-D", "n=0")
    assert done.status == 0, done.stderr
    texts = ("SELECT {} + 5, 'it''s';", 'SELECT {}\n  AS "n";')
    if mode == "simple":
        return [(mode, text.format(n), ()) for n in range(1, 21) for text in texts]
    return [(mode, text.format("$1"), (str(n),)) for n in range(1, 21) for text in texts]


def own(statements: tuple[captures.Statement, ...]) -> list[tuple[str, str, tuple[str | None, ...]]]:
    """Without what the lab's connection sends by itself."""
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
    assert found.about["server_version"].startswith(f"{logs.major}.")


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
    assert found.left_out() == {"copy-data": len(STYLES), "values-cut": 2 * len(STYLES)}


@pytest.mark.server
def test_tokens_keep_equality_and_length(logs: Logs, tmp_path: Path) -> None:
    log = logs.directory / "server.csv"
    plain, hidden = captured(tmp_path / "plain", log), captured(tmp_path / "hidden", log, "--anonymize")
    assert (hidden.about["anonymized"], plain.about["anonymized"]) == (True, False)
    assert hidden.templates == plain.templates
    assert not (tmp_path / "hidden.plain").exists()
    for application in logs.sent:
        before, after = plain.of(application).statements, hidden.of(application).statements
        assert [replace(each, text="", parameters=()) for each in before] == [
            replace(each, text="", parameters=()) for each in after
        ]
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


def line(text: str, pid: int = 7, time: str = "08:00:00.000") -> str:
    return f"2026-11-23 {time} UTC [{pid}] {text}\n"


QUERY = line("LOG:  statement: select 1")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from=2026-11-24", "--database=shop"], "the logs end at 2026-11-23 08:00:00, before --from"),
        (["--to=2026-11-23 08:00:00 UTC"], "the logs begin at 2026-11-23 08:00:00, not before --to"),
    ],
)
def test_times_outside_of_the_logs_are_answered_with_the_logs_own(tmp_path: Path, options: list[str], sentence: str):
    (tmp_path / "a.log").write_text(QUERY)
    said = refused("-o", tmp_path / "none", tmp_path / "a.log", *options)
    assert said == f"no statement of the logs is captured: {sentence}"


def texts(capture: Capture) -> list[list[str]]:
    return [[statement.text for statement in session.statements] for session in capture.sessions]


def test_several_logs_are_one_capture(tmp_path: Path) -> None:
    one, two = tmp_path / "1.log", tmp_path / "2.log"
    one.write_text(line("LOG:  connection received: host=[local]") + QUERY)
    two.write_text(line("LOG:  statement: select 2", time="09:00:00.000"))
    found = captured(tmp_path / "capture", one, two)
    assert texts(found) == [["select 1", "select 2"]]
    assert [source["bytes"] for source in found.about["sources"]] == [one.stat().st_size, two.stat().st_size]
    message = refused("-o", tmp_path / "other", two, one)
    assert message == (
        f'the log "{one}" begins before "{two}", which was read first. Name the logs in the order of their times'
    )


def test_standard_input_is_a_log(tmp_path: Path) -> None:
    done = capture("-o", tmp_path / "capture", "-", "--json", typed=QUERY.encode())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == captures.read(tmp_path / "capture").about


def test_amazons_and_googles_logs_are_read(tmp_path: Path) -> None:
    amazon, google = tmp_path / "amazon.log", tmp_path / "google.json"
    text = "LOG:  duration: 2000.000 ms  execute S_1: select $1"
    detail = "DETAIL:  parameters: $1 = 'a'"
    begin = "2026-11-23 08:00:05 UTC:10.0.0.9(50412):app@shop:[4711]:"
    amazon.write_text(f"{begin}{text}\n{begin}{detail}\n")
    begin = "2026-11-23 08:00:05.000 UTC [4711]: [1-1] db=shop,user=app "
    entries = [{"textPayload": begin + part, "timestamp": "2026-11-23T08:00:05Z"} for part in (text, detail)]
    google.write_text(json.dumps(entries, indent=2))
    for log, name in ((amazon, "stderr"), (google, "cloud-sql")):
        found = captured(tmp_path / name, log)
        (session,) = found.sessions
        assert (session.user, session.database) == ("app", "shop")
        (statement,) = session.statements
        assert (statement.sent, statement.duration_us) == (("prepared", "select $1", ("a",)), 2_000_000)
        assert found.about["begin_us"] == 1_795_420_803_000_000
        assert found.about["sources"][0]["format"] == name
    google.write_text("\n".join(json.dumps({"textPayload": begin.replace("05", f"{59 - n}") + text}) for n in range(9)))
    assert refused("-o", tmp_path / "late", google).startswith(
        f'the log "{google}" has its newest messages first. Sort it'
    )


def test_what_cannot_be_used_is_counted_with_its_first_line(tmp_path: Path) -> None:
    log = tmp_path / "mixed.log"
    log.write_bytes(
        (
            QUERY
            + line("LOG:  execute S_1: select $1")
            + line("LOG:  execute fetch from C_1: select $1")
            + line('LOG:  fastpath function call: "lo_open" (OID 952)')
            + "archive: done\n"
            + line("LOG:  statement: COPY a FROM STDIN")
            + line("LOG:  Anweisung: select 1")
            + line("FEHLER:  Division durch Null")
            + line("LOG:  statement: select 'ä'")
        ).encode("latin-1")
        + line("LOG:  statement: select 'cut").encode().rstrip(b"\n")
    )
    found = captured(tmp_path / "capture", log)
    assert texts(found) == [["select 1"]]
    places = {entry["reason"]: (entry["count"], entry["first"]["line"]) for entry in found.about["left_out"]}
    assert places == {
        "parameters-missing": (1, 2),
        "cursor-fetch": (1, 3),
        "function-call": (1, 4),
        "unreadable": (1, 5),
        "copy-data": (1, 6),
        "other-language": (2, 7),
        "not-utf8": (1, 9),
        "cut-short": (1, 10),
    }
    done = capture("-o", tmp_path / "again", log)
    assert b"2 messages in another language than English: set lc_messages = 'C' and log again (first: " in done.stdout


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "the logs have no statements. Set log_statement = 'all' or log_min_duration_statement = 0"),
        (line("LOG:  checkpoint starting: time"), [], "the logs have no statements. Set log_statement = 'all'"),
        (
            line("LOG:  durée : 0.1 ms, instruction : select 1"),
            [],
            "the logs are in another language than English (line 1 of",
        ),
        (
            "Nov 23 08:00:00 db1 7 LOG:  a\n",
            [],
            'no line of "{log}" begins with a known log_line_prefix; the first one is: Nov 23 08:00:00 db1 7'
            " LOG:  a. Give the server's with --prefix (SHOW log_line_prefix)",
        ),
        (
            "Nov 23 08:00:00 db1 postgres[7]: [3-1] LOG:  a\n",
            [],
            'the log "{log}" is of syslog, which cuts long statements and has no year; log with log_destination =',
        ),
        (
            QUERY + line("[user=app] LOG:  statement: select 2"),
            [],
            "line 2 of the log does not begin with '%m [%p] ', as lines before it do: 2026-11-23",
        ),
        (
            QUERY,
            ["--prefix=%t %p "],
            "no line of \"{log}\" begins with the prefix '%t %p '; the first one is: 2026-11-23 08:00:00.000 UTC [7] "
            "LOG:  statement: select 1. Give the server's log_line_prefix with --prefix; it looks like '%m [%p] '",
        ),
        (QUERY, ["--prefix=%m "], 'the prefix "%m " does not say which session a line is of'),
        (
            "\x1f\x8b\x08",
            [],
            'could not read the log "{log}": it is cut off or damaged, and nothing of it can be unpacked (gzip)',
        ),
        ("BZh91AY&SY", [], 'the log "{log}" is compressed by bzip2; unpack it: bzcat FILE | pgtrial capture - ...'),
        ('{"a": 1}\n', [], '"{log}" has JSON that is neither'),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(content: str, options: list[str], message: str, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(content.encode("latin-1" if "\x8b" in content else "utf-8"))
    assert refused("-o", tmp_path / "capture", log, *options).startswith(message.replace("{log}", str(log)))


def test_a_capture_is_not_written_over_something_else(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(QUERY)
    captured(tmp_path / "capture", log)
    message = f'"{tmp_path / "capture"}" is not empty. Name a new directory for the capture'
    assert refused("-o", tmp_path / "capture", log) == message
    assert refused("-o", tmp_path / "capture", log, "--anonymize") == message
    assert not (tmp_path / "capture.plain").exists()
    assert (tmp_path / "capture").stat().st_mode & 0o777 == 0o700
    assert refused("-o", tmp_path / "x", tmp_path / "no.log") == (
        f'could not open the log "{tmp_path / "no.log"}": No such file or directory'
    )


PACKINGS = ("gzip", "xz", "zstd")


def packed(packing: str, text: bytes) -> bytes:
    """A text as a file of this form."""
    if packing == "gzip":
        return gzip.compress(text, 1)
    if packing == "xz":
        return lzma.compress(text)
    require(shutil.which("zstd"), "the zstd command")
    return subprocess.run(["zstd", "-q", "-c"], input=text, check=True, capture_output=True).stdout


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


@pytest.mark.parametrize("packing", PACKINGS)
def test_of_a_compressed_log_that_is_cut_off_or_damaged_the_part_before_is_captured(
    packing: str, tmp_path: Path
) -> None:
    drawn = random.Random(1)
    lines = [line(f"LOG:  statement: select {drawn.getrandbits(64)}") for _ in range(20_000)]
    halves = [packed(packing, "".join(part).encode()) for part in (lines[:10_000], lines[10_000:])]
    cut, torn, foreign = (halves[0] + part for part in (halves[1][:-1000], halves[1][:9], b"something else"))
    for name, file in (("cut", cut), ("torn", torn), ("foreign", foreign)):
        (tmp_path / name).write_bytes(file)
        found = captured(tmp_path / f"{name} capture", tmp_path / name)
        (sent,) = texts(found)
        assert 9_999 <= len(sent) < 20_000
        assert sent == [text.split("statement: ")[1].rstrip() for text in lines[: len(sent)]]
        assert found.left_out()["damaged"] == 1


def test_plans_of_auto_explain_are_counted_and_no_statements(tmp_path: Path) -> None:
    plan = "duration: 0.010 ms  plan:\n\tQuery Text: select 7\n\tResult  (cost=0.00..0.01 rows=1 width=4)"
    (tmp_path / "log").write_text(QUERY + line("LOG:  " + plan) + QUERY + line("NOTICE:  " + plan))
    found = captured(tmp_path / "capture", tmp_path / "log")
    assert texts(found) == [["select 1", "select 1"]]
    assert found.left_out() == {"plan": 2}
    (tmp_path / "plans").write_text(line("LOG:  " + plan))
    assert refused("-o", tmp_path / "none", tmp_path / "plans").startswith(
        "no statement of the logs can be used; left out: 1 plans of auto_explain: statements are taken from the "
    )


def test_a_compressed_line_without_end_takes_bounded_memory(tmp_path: Path) -> None:
    packer = zlib.compressobj(1, wbits=31)
    zeros = bytes(1 << 24)
    parts = [packer.compress(2 * QUERY.encode()), *(packer.compress(zeros) for _ in range(64)), packer.flush()]
    (tmp_path / "log.gz").write_bytes(b"".join(parts))
    assert memory_kb("-o", tmp_path / "capture", tmp_path / "log.gz") < 300_000
    assert texts(captures.read(tmp_path / "capture")) == [["select 1"]]


# A process begins with the most memory that its parent ever had, so the capture's parent is a small one.
MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def memory_kb(*args: object) -> int:
    """The most memory that a capture had, in KiB."""
    command = [sys.executable, "-S", "-c", MEMORY, str(require_engine()), "capture", "-q", *map(str, args)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    statements = (
        line(
            f"LOG:  duration: 0.{n % 1000:03} ms  execute S_{n % 9}: select abalance from accounts where aid = $1",
            n % 90,
        )
        + line(f"DETAIL:  parameters: $1 = '{n}'", n % 90)
        for n in range(10_000)
    )
    block = "".join(statements).encode()
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    for log, size in ((small, 20_000_000), (large, 200_000_000)):
        with log.open("wb") as out:
            for _ in range(size // len(block)):
                out.write(block)
    least, most = memory_kb("-o", tmp_path / "a", small), memory_kb("-o", tmp_path / "b", large)
    assert most < least + 2048, (least, most)
    large.unlink()
