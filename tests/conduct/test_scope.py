"""The scope names what the coin swapped, and what stayed with an arm."""

from __future__ import annotations

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.store.study_file import build_study

STATISTICS = "planner statistics drawn for each copy"
FRESH = f"this host, a fresh copy of the data for every trial, {STATISTICS}"
OWN = "each arm with its own"
EXT4 = {"fs": "ext4"}


@pytest.mark.parametrize(
    ("server", "a", "b", "scope"),
    [
        ({}, {}, {"settings": {"jit": "off"}}, FRESH),
        ({"huge_pages": "off"}, {}, {"huge_pages": "2MB"}, FRESH),
        ({}, {"postgres": "17"}, {}, f"{FRESH}, {OWN} server build and loaded data"),
        (
            {},
            {"postgres": "/opt/master/bin"},
            {"postgres": "/opt/patch/bin"},
            f"{FRESH}, {OWN} server build and loaded data",
        ),
        ({}, {"initdb": ["--no-data-checksums"]}, {}, f"{FRESH}, {OWN} loaded data"),
        ({"storage": EXT4}, {}, {"storage": {"fs": "xfs"}}, FRESH),
        ({"storage": EXT4 | {"wal": EXT4}}, {}, {"storage": {"fs": "xfs", "wal": EXT4}}, FRESH),
        ({"storage": EXT4}, {}, {"storage": EXT4 | {"size": "4GB"}}, f"{FRESH}, {OWN} place of the data"),
        ({"storage": EXT4}, {}, {"storage": {"fs": "tmpfs"}}, f"{FRESH}, {OWN} place of the data"),
        ({}, {}, {"storage": EXT4}, f"{FRESH}, {OWN} place of the data"),
        ({"storage": EXT4 | {"on": "/dev/sdb"}}, {}, {}, FRESH),
        (
            {},
            {"storage": EXT4 | {"on": "/dev/sdb"}},
            {"storage": EXT4 | {"on": "/dev/sdc"}},
            f"{FRESH}, {OWN} place of the data",
        ),
        (
            {"storage": EXT4 | {"on": ["/dev/sdb", "/dev/sdc"]}},
            {},
            {},
            f"{FRESH}, its place swapped at random between /dev/sdb and /dev/sdc",
        ),
        (
            {},
            {"storage": {"on": ["/d1", "/d2"]}},
            {"storage": {"on": ["/d3", "/d4"]}},
            f"{FRESH}, its place swapped at random between /d1 and /d2 or between /d3 and /d4, {OWN} place of the data",
        ),
        ({"reset": "vacuum"}, {}, {}, "this host, kept copies of the data swapped at random"),
        ({"reset": "none"}, {}, {}, f"this host, {OWN} kept copy of the data"),
        (
            {"reset": "vacuum"},
            {"postgres": "17"},
            {},
            f"this host, {OWN} server build, loaded data and kept copy of the data",
        ),
        ({"dsn": "host=db"}, {}, {"settings": {"jit": "off"}}, "this given server as it is deployed"),
        ({}, {"dsn": "host=one"}, {"dsn": "host=two"}, f"these 2 given servers as they are deployed, {OWN} server"),
        (
            {},
            {"dsn": ["host=a1", "host=a2"]},
            {"dsn": ["host=b1", "host=b2"]},
            f"these 2 deployments of each arm, too few to stand for others of their kind, {OWN} server",
        ),
        (
            {},
            {"dsn": [f"host=a{n}" for n in range(6)]},
            {"dsn": [f"host=b{n}" for n in range(6)]},
            "6 deployments of each arm, which stand for others of their kind",
        ),
        (
            {},
            {"dsn": "host=one"},
            {},
            "this host and this given server as it is deployed, a fresh copy of the data for every trial of b"
            f", {STATISTICS}, {OWN} server",
        ),
    ],
)
def test_the_scope_says_what_was_swapped_and_what_was_not(server, a, b, scope):
    study = {"load": {"share_server": False}, "server": server, "arms": {"a": a, "b": b}, "verdict": {"blocks": 6}}
    assert make_plan(build_study(study, "test"), 1, "2026-11-20T14:12:00+00:00").scope == scope
