"""A server or a pooler that breaks the protocol: no transaction counts, and both say the same."""

from __future__ import annotations

import pytest

from pgtrial.loads.target import Target
from tests.engine.fake_server import USUAL, FakeServer, complete, description, message, row
from tests.engine.guarded import ADDRESS
from tests.engine.programs import settled

VIOLATIONS = {
    "an unknown type": message(b"y", b"abc"),
    "an unknown type after a result": USUAL + message(b"y", b"abc"),
    "an authentication request": message(b"R", bytes(4)),
    "a function's result": message(b"V", b"\0\0\0\1a"),
    "a negotiation of the protocol": message(b"v", bytes(8)),
    "a suspended portal": description("a") + row(b"1") + message(b"s"),
    "nothing": b"",
    "a notice alone": message(b"N", b"SNOTICE\0Mhello\0\0"),
    "a row before its description": row(b"1") + complete(),
    "a row after its result": USUAL + row(b"1") + complete(),
    "too few values": description("a", "b") + row(b"1") + complete(),
    "too many values": description("a") + row(b"1", b"2") + complete(),
    "a row without its values": description("a", "b") + message(b"D", b"\0\2\0\0\0\0011") + complete(),
    "a value longer than its row": description("a") + message(b"D", b"\0\1\0\0\0\1471") + complete(),
    "a row with more than its values": description("a") + message(b"D", b"\0\1\0\0\0\0011xyz") + complete(),
    "an empty row": description("a") + message(b"D") + complete(),
    "a description without its columns": message(b"T", b"\0\2a\0") + row(b"1", b"2") + complete(),
    "an empty description": message(b"T") + complete(),
    "a tag with more behind it": message(b"C", b"SELECT 1\0abc"),
    "a status with more behind it": USUAL + message(b"Z", b"Ixyz"),
    "a length of two": b"C\0\0\0\2",
    "a length of nothing": b"C\0\0\0\0",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a tag that is too long": message(b"C", b"S" * 40_000 + b"\0"),
    "a negative length": b"D\xff\xff\xff\xff",
}

ALLOWED = {
    "a usual reply": USUAL,
    "a command without rows": complete("SET"),
    "an empty statement": message(b"I"),
    "no rows": description("a") + complete("SELECT 0"),
    "a null": description("a") + message(b"D", b"\0\1\xff\xff\xff\xff") + complete(),
    "no columns": description() + row() + complete(),
    "a parameter's new value": message(b"S", b"TimeZone\0UTC\0") + USUAL,
    "a notification": message(b"A", bytes(4) + b"channel\0payload\0") + USUAL,
    "no data": message(b"n") + complete("SET"),
    "two results": USUAL + USUAL,
    "a description in the middle of a result": description("a") + row(b"1") + USUAL,
    "data of a copy": message(b"d", b"abc") + message(b"c") + USUAL,
    "many rows": description("a") + 5000 * row(b"x" * 30) + complete("SELECT 5000"),
    "a large row": description("a") + row(b"x" * 200_000) + complete(),
}
OF_SIMPLE_QUERIES = {"two results", "a description in the middle of a result"}
PROCESSED = "number of transactions actually processed: "


@pytest.fixture
def said(peers, tmp_path):
    """Status, transactions and standard error of both, with a server that answers each execution by these bytes."""
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n")

    def run(reply: bytes, *args: str):
        results = []
        for program in peers:
            with FakeServer(lambda: reply) as server:
                target = Target(host=ADDRESS, port=server.port, user="u", dbname="d")
                done = settled(program.run(target, "-n", "-t", "2", "-f", str(script), *args, PGSSLMODE="disable"))
            count = [line for line in done.stdout.splitlines() if line.startswith(PROCESSED)]
            results.append((done.status, count, done.stderr))
        return results

    return run


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("case", VIOLATIONS)
def test_what_breaks_the_protocol_is_no_success(said, case, mode):
    theirs, mine = said(VIOLATIONS[case], "-M", mode)
    assert mine == theirs
    assert mine[:2] == (2, [f"{PROCESSED}0/2"])


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("case", ALLOWED)
def test_what_libpq_takes_is_taken(said, case, mode):
    theirs, mine = said(ALLOWED[case], "-M", mode)
    assert mine == theirs
    is_taken = mode == "simple" or case not in OF_SIMPLE_QUERIES
    assert mine[:2] == ((0, [f"{PROCESSED}2/2"]) if is_taken else (2, [f"{PROCESSED}0/2"]))


@pytest.mark.parametrize("body", [b"Mbad\0\0", b"\0", b"SERROR\0\0", b"C42601\0\0", b"Mbad\0Dmore\0\0"])
def test_errors_without_fields(said, body):
    theirs, mine = said(message(b"E", body))
    assert mine == theirs
    assert mine[0] == 2
