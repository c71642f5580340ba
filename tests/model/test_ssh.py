"""Arms on hosts reached by ssh in a study file: what goes together, and what the verdict then speaks of."""

import tomllib

import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.scope import differing_keys as declared
from pgtrial.conduct.planning.scope import hosts_of, scope_of
from pgtrial.model.errors import StudyError
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze
from pgtrial.model.study.servers import Given
from pgtrial.store.study_file import build_study

THERE = {"ssh": "root@a.example", "data": "/var/db/pgtrial"}


def study(**arms):
    server = arms.pop("server", {})
    return build_study({"server": server, "arms": arms}, "s.toml")


def test_arms_take_what_all_share_and_their_own():
    spec = study(
        server={"data": "/var/db/pgtrial", "ssh": "a.example", "port": 6000, "sudo": True, "address": "10.0.0.1"},
        one={},
        two={"ssh": "b.example", "postgres": "/usr/local/bin", "sudo": False},
        given={"dsn": "host=c.example"},
    )
    one, two, given = (spec.resolved(name) for name in ("one", "two", "given"))
    assert (one.ssh, one.address, one.port, one.sudo, one.postgres) == ("a.example", "10.0.0.1", 6000, True, "18")
    # another host has another address
    assert (two.ssh, two.address, two.port, two.sudo, two.postgres) == (
        "b.example",
        None,
        6000,
        False,
        "/usr/local/bin",
    )
    assert isinstance(given, Given)
    assert given.ssh is None


def test_an_ssh_arm_is_kept_as_it_was_written():
    spec = study(a=THERE, b={**THERE, "ssh": "b"})
    frozen = tomllib.loads(freeze(spec))
    assert frozen["arms"]["a"]["ssh"] == "root@a.example"
    assert build_study(frozen, "again") == spec


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ({"ssh": "a"}, r"\[arms.x\] has ssh and no data"),
        ({"ssh": "a", "data": "here"}, "'here' is not a folder"),
        ({"ssh": "a", "data": "/"}, "'/' is not a folder"),
        ({"ssh": "a b", "data": "/x"}, "'a b' is not a login"),
        ({"ssh": "@a", "data": "/x"}, "'@a' is not a login"),
        ({"ssh": "-oProxyCommand=x", "data": "/x"}, "is not a login"),
        ({**THERE, "dsn": "host=b"}, "has dsn, ssh and data; pgtrial makes nothing on the host of a given server"),
        ({"dsn": "host=b", "ssh": "a", "address": "b", "port": 6000}, "remove address and port"),
        (
            {"dsn": ["host=b", "host=c"], "ssh": "a"},
            "dsn names 2 servers; pgtrial can look only at the host of a single given server",
        ),
        ({"dsn": "host=b", "sudo": True}, "has sudo, which is for a server on another host; remove it, or add ssh"),
        ({**THERE, "connect": "tcp"}, "reached by TCP; leave connect out"),
        ({**THERE, "postgres": "~/pg"}, "on another host, write the directory from / on"),
        ({"address": "b", "port": 6000}, "has address and port, which is for a server on another host"),
        ({**THERE, "port": 22}, "port must be greater than or equal to 1024"),
    ],
)
def test_what_does_not_go_together_is_refused_at_reading(arm, said):
    with pytest.raises(StudyError, match=said):
        study(x=arm, y={})


def scope(spec):
    return scope_of(interleaved(Design(spec)), 8)


def test_a_host_stands_beside_the_dsn_of_its_server_and_changes_neither_scope_nor_what_else_the_arm_is():
    beside = {"dsn": "host=b.example", "ssh": "me@b.example"}
    spec = study(a=THERE, b=beside)
    assert spec.resolved("b").ssh == "me@b.example"
    assert isinstance(spec.resolved("b"), Given)
    assert scope(spec) == scope(study(a=THERE, b={"dsn": "host=b.example"}))
    assert hosts_of(Design(spec))["b"][0] == ServerHost(
        label="b.example", by="dsn", address="b.example", looked_at="me@b.example"
    )


def test_a_host_of_the_server_table_is_not_that_of_an_arms_own_dsn():
    spec = build_study(
        {"server": {"ssh": "root@a.example", "data": "/x"}, "arms": {"a": {}, "b": {"dsn": "host=b.example"}}}, "test"
    )
    assert (spec.resolved("a").ssh, spec.resolved("b").ssh) == ("root@a.example", None)
    shared = build_study({"server": {"dsn": "host=b", "ssh": "b"}, "arms": {"a": {}, "b": {"dsn": "host=c"}}}, "test")
    assert (shared.resolved("a").ssh, shared.resolved("b").ssh) == ("b", None)


def test_the_scope_names_the_hosts_and_that_they_are_not_swapped():
    two = study(a=THERE, b={**THERE, "ssh": "root@b.example"})
    assert scope(two).startswith("these 2 hosts (a.example, b.example), a fresh copy of the data for every trial")
    assert "each arm with its own host" in scope(two)
    one = study(a=THERE, b={**THERE, "settings": {"jit": "off"}})
    copied = "the host a.example, a fresh copy of the data for every trial, planner statistics drawn for each copy"
    assert scope(one) == f"{copied}, all arms as sessions of one server"
    builds = study(a=THERE, b={**THERE, "settings": {"fsync": "off"}})
    assert scope(builds) == copied
    two_disks = study(a=THERE, b={**THERE, "data": "/mnt/second"})
    assert scope(two_disks).endswith(", each arm with its own place of the data")
    mixed = study(a={}, b=THERE)
    assert scope(mixed).startswith("this host and the host a.example, ")


def test_kept_copies_are_swapped_between_arms_of_one_host_only():
    kept = {"reset": "vacuum"}
    same = study(a={**THERE, **kept}, b={**THERE, **kept, "settings": {"jit": "off"}})
    assert [group.arms for group in Design(same).shared_storage] == [("a", "b")]
    apart = study(a={**THERE, **kept}, b={**THERE, **kept, "ssh": "root@b.example"})
    assert Design(apart).shared_storage == []


def test_another_host_is_declared_as_one():
    spec = study(a=THERE, b={**THERE, "ssh": "root@b.example"})
    assert declared(spec.resolved("b"), spec.resolved("a")) == ["server.host"]
