"""Tests of the list of a study's effects on this machine, which a person reads before running a stranger's study."""

from __future__ import annotations

import pytest

from pgtrial.model.study import effects
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.spec import StudySpec


def kinds(setup=None, load=None, scripts=None, **sections) -> set[str]:
    arms = {"a": {}, "b": setup or {}}
    spec = StudySpec.model_validate({"arms": arms, "load": load or {}, **sections})
    return {effect.kind for effect in effects_of(spec.with_scripts(scripts or {}))}


HARMLESS = [
    {},
    {"postgres": "17"},
    {"settings": {"work_mem": "64MB", "jit": "off", "random_page_cost": "1.1", "wal_compression": "lz4"}},
    {"settings": {"shared_preload_libraries": "pg_stat_statements, auto_explain", "search_path": '"$user", public'}},
    {"initdb": ["--locale=C", "--encoding=UTF8", "-k"]},
    {"reset": "vacuum", "connect": "tcp", "price": "0.42 USD/h"},
]


@pytest.mark.parametrize("setup", HARMLESS, ids=str)
def test_a_load_on_servers_that_pgtrial_makes_is_all_it_does(setup):
    assert kinds(setup) == set()


@pytest.mark.parametrize(
    ("setup", "kind"),
    [
        ({"command": "sh -c 'id > /tmp/x'"}, "commands"),
        ({"postgres": "/home/mallory/pg/bin"}, "commands"),
        ({"environment": {"LD_PRELOAD": "/tmp/x.so"}}, "commands"),
        ({"initdb": ["--waldir=/etc/x"]}, "commands"),
        ({"initdb": ["--set", "archive_command=id"]}, "commands"),
        ({"initdb": ["-L", "/tmp/share"]}, "commands"),
        *(
            ({"settings": {name: value}}, "commands")
            for name, value in (
                ("archive_command", "reboot"),
                ("Archive_Command", "sh -c id"),
                ("restore_command", "id"),
                ("ssl_passphrase_command", "id"),
                ("shared_preload_libraries", "/tmp/evil"),
                ("jit_provider", "../evil"),
                ("dynamic_library_path", "evil"),
                ("log_directory", "/etc/cron.d"),
                ("external_pid_file", "/root/x"),
                ("primary_conninfo", "host=mallory.example.org"),
                ("plperl.on_init", "system(1)"),
                ("basebackup_to_shell.command", "id"),
                ("basic_archive.archive_directory", "x"),
            )
        ),
        ({"dsn": "env"}, "servers"),
        ({"dsn": "host=db1 dbname=shop"}, "servers"),
        ({"ssh": "root@db1"}, "servers"),
        ({"dsn": "host=db1", "monitoring": {"cloudwatch": "my-db"}}, "servers"),
        ({"storage": {"fs": "ext4", "on": "/dev/loop0", "overwrite": True}}, "machine"),
        ({"storage": {"on": "/home/reader"}}, "machine"),
        ({"storage": {"fs": "ext4"}}, "machine"),
        ({"storage": {"fs": "ext4", "wal": {"fs": "xfs", "on": "/dev/sdb"}}}, "machine"),
        ({"sysctl": {"kernel.core_pattern": "|/tmp/x"}}, "machine"),
        ({"huge_pages": "2MB"}, "machine"),
        ({"thp": "never"}, "machine"),
        ({"governor": "performance"}, "machine"),
        ({"postgres": "git:https://example.org/postgres@master"}, "sources"),
        ({"postgres": "source:/home/mallory/postgres"}, "sources"),
        ({"extensions": ["git:https://example.org/x@main"]}, "sources"),
        ({"setup_sql": ["CREATE INDEX ON pgbench_accounts (abalance)"]}, "sql"),
        ({"setup_sql": ["COPY x TO\n PROGRAM 'id'"]}, "commands"),
        ({"workload": "scripts/../../secret.sql"}, "files"),
    ],
    ids=str,
)
def test_what_a_server_does_is_told_by_its_kind(setup, kind):
    assert kind in kinds(setup)


@pytest.mark.parametrize(
    ("load", "scripts", "kind"),
    [
        ({"workload": "scripts/a.sql"}, {"a.sql": "SELECT 1;\n"}, "sql"),
        ({"workload": "scripts/a.sql"}, {"a.sql": "\\setshell x id\nSELECT 1;\n"}, "commands"),
        ({"workload": "scripts/a.sql"}, {"a.sql": " \\shell id\nSELECT 1;\n"}, "commands"),
        ({"workload": "scripts/a.lua"}, {"a.lua": "os.execute('id')"}, "commands"),
        ({"workload": "job:", "job": {"command": "pg_dump -f /etc/x"}}, {}, "commands"),
        ({"data": ["/etc/shadow"]}, {}, "files"),
        ({"data": ["host=db1 dbname=shop"]}, {}, "servers"),
        ({"workload": "replay:/home/reader/capture", "replay": {"data": "/home/reader/shop.dump"}}, {}, "files"),
        ({"workload": "scripts/../../secret.sql"}, {}, "files"),
        ({"workload": "suite:/home/reader/queries"}, {}, "files"),
        ({"workload": "suite:scripts/../../queries"}, {}, "files"),
        ({"workload": "job:/home/reader/job.sql"}, {}, "files"),
        (
            {"workload": "job:", "job": {"command": "true", "reads": {"n": {"pattern": "n", "file": "/etc/shadow"}}}},
            {},
            "files",
        ),
    ],
    ids=str,
)
def test_what_a_load_does_is_told_by_its_kind(load, scripts, kind):
    assert kind in kinds(load=load, scripts=scripts)


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ({"sql": "SELECT 1"}, "sql"),
        ({"sql": "COPY (SELECT 1) TO PROGRAM 'id'"}, "commands"),
        ({"command": "sh -c 'id > /tmp/x; echo 1'"}, "commands"),
    ],
)
def test_what_finds_a_metric_is_told_by_its_kind(metric, kind):
    assert kinds(metrics={"mine": {**metric, "better": "more"}}) == {kind}


def test_a_fleet_elsewhere_is_told():
    assert kinds(fleet={"address": "ray://mallory:10001"}) == {"servers"}
    assert kinds(fleet={"address": "local"}) == set()


def test_a_password_in_a_connection_string_is_not_told():
    spec = StudySpec.model_validate({"arms": {"a": {"dsn": "host=db1 password=s3cr3t"}, "b": {}}})
    (effect,) = effects_of(spec)
    assert effect.text == "a: connects to host=db1"


def test_every_key_of_a_server_is_known_to_be_harmless_or_has_its_words():
    """Keys that are neither are shown to the user as if they ran a command. Whoever adds a key has to decide what it
    does.
    """
    assert effects._HARMLESS | effects._OF_KEYS.keys() == SetUp.model_fields.keys()
