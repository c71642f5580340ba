"""Targets keep their secrets."""

from __future__ import annotations

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
