"""Captures of written logs: several, of other services, damaged, of any length; what is no log is refused."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path

import pytest

from tests.conftest import require_engine
from tests.engine import captures
from tests.engine.capture_program import PACKINGS, capture, captured, packed, refused
from tests.engine.captures import Capture
from tests.processes import peak_kib


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
            'no line of "{log}" begins with a known log_line_prefix; the first line is: Nov 23 08:00:00 db1 7'
            " LOG:  a. Give the server's log_line_prefix with --prefix (SHOW log_line_prefix)",
        ),
        (
            "Nov 23 08:00:00 db1 postgres[7]: [3-1] LOG:  a\n",
            [],
            'the log "{log}" was written by syslog, which cuts long statements and has no year; log with '
            "log_destination = 'stderr', 'csvlog' or 'jsonlog'",
        ),
        (
            QUERY + line("[user=app] LOG:  statement: select 2"),
            [],
            "line 2 of the log does not begin with '%m [%p] ', as lines before it do: 2026-11-23",
        ),
        (
            QUERY,
            ["--prefix=%t %p "],
            "no line of \"{log}\" begins with the prefix '%t %p '; the first line is: 2026-11-23 08:00:00.000 UTC [7] "
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


def memory_kb(*args: object) -> int:
    """Returns the most memory that a capture had, in KiB."""
    return peak_kib([str(require_engine()), "capture", "-q", *map(str, args)])


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
