"""Targets keep their secrets."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pgtrial
from pgtrial.loads.target import Target


def test_the_password_is_in_the_environment_and_nowhere_else():
    target = Target("db.example", 5433, "ann", "shop", "s3cret", {"sslmode": "require", "keepalives": "1"})
    assert "s3cret" not in repr(target) + str(target) + target.label
    assert target.environment() == {
        "PGHOST": "db.example",
        "PGPORT": "5433",
        "PGUSER": "ann",
        "PGDATABASE": "shop",
        "PGPASSWORD": "s3cret",
        "PGSSLMODE": "require",
    }


def test_only_sockets_and_loopback_are_this_machine():
    def local(host: str) -> bool:
        return Target(host, 5432, "u", "d").local

    assert all(map(local, ["/run/postgresql", "localhost", "127.0.0.1", "::1"]))
    assert not any(map(local, ["10.0.0.1", "db.example", "::2"]))


def test_an_address_beside_a_name_leaves_the_name_to_tls():
    target = Target("10.0.0.1", 5432, "ann", "db", extra={"sslmode": "verify-full", "sslsni": "0"}, name="db.example")
    assert target.environment() == {
        "PGHOST": "db.example",
        "PGHOSTADDR": "10.0.0.1",
        "PGPORT": "5432",
        "PGUSER": "ann",
        "PGDATABASE": "db",
        "PGSSLMODE": "verify-full",
        "PGSSLSNI": "0",
    }


LAB = Path(pgtrial.__file__).parent
MAKES_SESSIONS = "loads/target.py"
"""The one file that opens sessions: it keeps PG* variables out, sets what the lab's sessions need, and bounds waits."""


def opened_elsewhere(source: str) -> list[int]:
    """Returns the lines of a source at which psycopg itself opens a session, under whatever name it was imported."""
    tree = ast.parse(source)
    modules, callables = {"psycopg"}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.asname for name in node.names if name.name == "psycopg" and name.asname}
        if isinstance(node, ast.ImportFrom) and node.module == "psycopg":
            callables |= {name.asname or name.name for name in node.names if name.name in CLASSES | {"connect"}}
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in callables and name not in CLASSES:
                lines.append(node.lineno)
            case ast.Attribute(attr="connect", value=ast.Name(id=name)) if name in modules | callables:
                lines.append(node.lineno)
            case ast.Attribute(attr="connect", value=ast.Attribute(attr=name, value=ast.Name(id=module))):
                lines += [node.lineno] if module in modules and name in CLASSES else []
    return lines


CLASSES = {"Connection", "AsyncConnection"}


@pytest.mark.parametrize(
    "source",
    [
        "import psycopg\npsycopg.connect()",
        "import psycopg as pg\npg.connect('')",
        "from psycopg import connect\nconnect('')",
        "from psycopg import connect as dial\ndial('')",
        "from psycopg import Connection\nConnection.connect('')",
        "import psycopg\npsycopg.AsyncConnection.connect('')",
    ],
)
def test_each_way_to_open_a_session_is_found(source):
    assert opened_elsewhere(source) == [2]


def test_sessions_are_opened_in_one_file_alone():
    assert opened_elsewhere("import psycopg\ntarget.connect()\nprobe.connect(there)") == []
    found = {
        path.relative_to(LAB).as_posix(): lines
        for path in LAB.rglob("*.py")
        if (lines := opened_elsewhere(path.read_text()))
    }
    assert found.keys() == {MAKES_SESSIONS}
    assert len(found[MAKES_SESSIONS]) == 1
