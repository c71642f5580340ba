"""The original pgbench 18 and ours, run with the same arguments, say the same and end alike."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from tests.engine.programs import settled
from tests.engine.sessions import wait_until_left

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]


RUNS = [
    *(
        f"-n {limit} -b {script} -M {mode}"
        for script in ("tpcb-like", "simple-update", "select-only")
        for mode in ("simple", "extended", "prepared")
        for limit in ("-t 20", "-T 1")
    ),
    "",
    "-t 2 -v",
    "-v -n -t 1",
    "-t 2 -c 3",
    "-n -S -t 5 -c 2 -j 9",
    "-n -S -t 5 -c 5 -j 2",
    "-n -N -t 5 -r",
    "-n -t 5 -r -M prepared -c 2 -j 2",
    "-n -S -r -t 1",
    "-n -S -T 2 -P 1",
    "-n -S -T 2 -P 1 -c 2 -j 2 -r",
    "-n -S -t 3 -P 1000",
    "-n -S -T 1 -P 1000",
    "-n -S -C -t 5",
    "-n -S -C -t 5 -c 3 -j 2 -M prepared",
    "-n -N -C -T 1 -r",
    "-n -C -T 2 -P 1 -S",
    "-n -t 40 --random-seed=1 -b tpcb -b select@3 -b simple@2",
    "-n -t 40 --random-seed=1 -b tpcb -b select@3 -r",
    "-n -T 2 -b select -b simple@2 -P 1",
    "-n -t 5 -b select@0 -b simple",
    "-n -t 5 -b select@0 -b simple@1 -r -P 1000",
    "-n -t 3 -S -N --random-seed 5",
    "-n -S -t 2 -s 2",
    "-n -S -t 2 -s 77",
    "-n -S -t 2 --random-seed=time",
    "-n -S -t 2 --random-seed=rand",
    "-n -S -t 2 --random-seed=0",
    "-n -S -t 2 --random-seed=-1",
    "-nSt2 -c2",
    "--no-vacuum --select-only --transactions=2 --client=2 --jobs=2",
    "--no-vac --sel --trans 2 --cl 2 --jo 2 --report-per --prot prepared",
    "-n -S -t +2 -c ' 2 '",
    "-n -S -t 4 --builtin=simple --random-seed=1",
    "loaded -n -S -t 1",
    "-n -S -t 1 -d loaded",
    "-n -S -t 1 -- loaded",
]


@pytest.mark.parametrize("line", RUNS)
def test_a_run_prints_the_same_lines(both, loaded, line):
    def act(program):
        run = program.run_in_time if program.name == "original" else program.run
        return settled(run(loaded(18), *shlex.split(line)))

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.parametrize("major", [15, 16, 17])
def test_a_run_prints_the_same_lines_on_older_servers(both, loaded, major):
    args = shlex.split("-t 5 -M prepared -c 2 -r")
    theirs, mine = both(lambda program: settled(program.run(loaded(major), *args)), major=major)
    assert mine == theirs


REFUSALS = [
    # values and ranges
    *(
        f"{option} {value}"
        for option in ("-c", "-j", "-t", "-T", "-P", "-s", "-i -s", "-i -F")
        for value in ("0", "-1", "x", "1x", "1.5", "''", "2147483648", "99999999999999999999999", "' '")
    ),
    "-i -F 9",
    "-i -F 101",
    "-c 2147483644",
    "-M foo",
    "-M ''",
    "-M Simple",
    "--random-seed=foo",
    "--random-seed=''",
    "--random-seed=1x",
    "--random-seed='1 '",
    "--random-seed=42 -c 0",
    "-c 0 --random-seed=42",
    "-b foo",
    "-b ''",
    "-b s",
    "-b S",
    "-b tpcb@x",
    "-b tpcb@",
    "-b tpcb@1x",
    "-b tpcb@-1",
    "-b tpcb@2147483648",
    "-b tpcb@99999999999999999999999",
    "-b foo@2",
    "-b @2",
    "-b select@0",
    "-b select@0 -b tpcb@0",
    # pairs that cannot be
    "-t 1 -T 1",
    "-T 1 -t 1 -n",
    *(
        f"-i {option}"
        for option in ("-c 2", "-j 2", "-t 2", "-T 2", "-C", "-M prepared", "-P 1", "-r", "-S", "-N", "-v")
    ),
    "-i -b tpcb",
    "-i --random-seed=4",
    "-i -n -v",
    *(f"{option} -t 1" for option in ("-F 90", "-q", "-I dt", "--foreign-keys")),
    "-i -b select@0",
    # getopt
    "--bogus",
    "--bogus=1",
    "-Z",
    "-nZ",
    "-c",
    "-nc",
    "--client",
    "--jobs",
    "--no-vacuum=yes",
    "--init",
    "--init=d",
    "-i --no-such",
    "--report-latencies",
    "-n --help",
    "-n -?",
    "-n -V",
    "--help=3",
    # arguments
    "a b",
    "a b c",
    "-d a b",
    "a -n b -S",
    "-i a b",
    "-i -c 2 a b",
    # steps
    "-i -I x",
    "-i -I dtx",
    "-i -I ''",
    "-I xyz -i",
    "-i -I D",
    # scripts that are shown
    "-b list",
    "-b lis",
    "--builtin=list -c 0",
    "--show-script=tpcb",
    "--show-script=simple",
    "--show-script=select",
    "--show-script=s",
    "--show-script=foo",
    "--show-script=select -c 0",
    "-c 0 --show-script=select",
    # servers
    "-t 1 nodb",
    "-i nodb",
    "-t 1 postgres",
    "-U nobody2 -t 1",
    "-i -U nobody2",
    "-h /nonexistent -t 1",
    "-i -h /nonexistent",
    "-p 1 -t 1",
    "-h 127.0.0.1 -p 1 -t 1",
    "-h localhost -p 1 -t 1",
    "-h no..such.host -t 1",
    "-p 0 -t 1",
    "-p 65536 -t 1",
    "-p foo -t 1",
    "-p '' -U nobody2 -t 1",
]


@pytest.mark.parametrize("line", REFUSALS)
def test_a_refusal_has_the_same_words(both, loaded, line):
    theirs, mine = both(lambda program: settled(program.run(loaded(18), *shlex.split(line))))
    assert mine == theirs


def test_a_server_without_room_has_the_same_words(both, loaded):
    def act(program):
        done = program.run(loaded(18), *shlex.split("-n -S -c 150 -t 1"))
        # the places of the clients that were there have to be free again
        wait_until_left(loaded(18))
        return settled(done)

    theirs, mine = both(act)
    assert mine == theirs


@pytest.mark.parametrize("seed", ["7", "time", "x", ""])
def test_the_seed_of_the_environment_is_taken_alike(both, loaded, seed):
    args = ("-n", "-S", "-t", "1")
    theirs, mine = both(lambda program: settled(program.run(loaded(18), *args, PGBENCH_RANDOM_SEED=seed)))
    assert mine == theirs


@pytest.mark.parametrize("line", ["-t 40", "-t 40 -r -j 2", "-T 2 -P 1"])
def test_failed_transactions_are_told_alike(both, fresh, line):
    target = fresh()
    args = ("-n", "-N", "-c", "8", *line.split())
    with target.connect_as_user() as connection:
        # All clients count in one row: under repeatable read most of them fail.
        connection.execute(
            "CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1; RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE TRIGGER count_it BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION count_it()"
        )

    def act(program):
        done = program.run_in_time(target, *args, PGOPTIONS="-c default_transaction_isolation=repeatable\\ read")
        failures = r"failed transactions: [1-9]\d* \(\d+\.\d{3}%\)|actually processed: [1-9]\d*"
        of_commands = r"(?<=^ {3}[ \d.]{11} )[ \d]{11}(?= )"
        stdout = re.sub(failures, "#", done.stdout)
        return settled(replace(done, stdout=re.sub(of_commands, "##########", stdout, flags=re.MULTILINE)))

    theirs, mine = both(act)
    assert mine == theirs
    assert mine["stdout"].count("#\n") + mine["stdout"].count("#/320\n") == 2


_FAILING_TRIGGER = """
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no' USING HINT = 'so', DETAIL = 'because'; END $$;
    CREATE TRIGGER t BEFORE INSERT ON pgbench_history EXECUTE FUNCTION f()"""
_WARNING_TRIGGER = """
    CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE WARNING 'beware'; RETURN NEW; END $$;
    CREATE TRIGGER t BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE FUNCTION f()"""
_CHANGES = [
    "DROP TABLE pgbench_accounts",
    "DELETE FROM pgbench_branches",
    "ALTER TABLE pgbench_tellers ADD CHECK (tbalance = 0) NOT VALID",
    _FAILING_TRIGGER,
    _WARNING_TRIGGER,
    "DROP TABLE pgbench_tellers",
    "DROP TABLE pgbench_history",
    "ALTER TABLE pgbench_accounts RENAME COLUMN abalance TO other",
]


@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_a_broken_schema_ends_the_clients_alike(both, fresh, mode, change):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute(change)
    args = ("-t", "2", "-M", mode, "--random-seed=1")
    theirs, mine = both(lambda program: settled(program.run(target, *args)))
    assert mine == theirs


def test_a_role_without_rights_is_told_so_alike(both, fresh):
    target = fresh()
    with target.connect_as_user() as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT SELECT ON pgbench_branches, pgbench_accounts TO guest")
    guest = replace(target, user="guest")
    lines = ("-t 1", "-t 1 -v", "-S -n -t 1", "-N -n -t 1", "-i -I d", "-i -I t", "-i -I g", "-i -I v")
    theirs, mine = both(lambda program: [settled(program.run(guest, *line.split())) for line in lines])
    assert mine == theirs
    with target.connect_as_user() as connection:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")


def test_partitions_are_told_alike(both, peers, fresh):
    target = fresh(empty=True)
    peers[0].load(target, "--partitions=3", "--partition-method=hash")
    theirs, mine = both(lambda program: settled(program.run(target, "-n", "-t", "2")))
    assert mine == theirs


def test_help_and_version_come_first_or_not_at_all(peers, loaded):
    for program in peers:
        for option in ("--help", "-?"):
            done = program.run(loaded(18), option, "--bogus")
            assert (done.status, done.stderr) == (0, "")
            assert done.stdout.startswith(
                "pgbench is a benchmarking tool for PostgreSQL.\n\nUsage:\n  pgbench [OPTION]"
            )
        for option in ("--version", "-V"):
            done = program.run(loaded(18), option, "--bogus")
            assert (done.status, done.stderr) == (0, "")
            assert done.stdout.startswith("pgbench (PostgreSQL) 18")


def test_the_help_is_the_originals_and_what_is_ours_apart(peers, loaded):
    theirs, text = (program.run(loaded(18), "--help").stdout for program in peers)
    added = text[text.index("Options that pgtrial adds") : text.index("Common options:")]
    assert "--events" in added
    (options, *theirs), (ours, *mine) = (
        each.partition("Report bugs to <")
        for each in (
            theirs,
            text.replace(added, "").replace("This pgbench is a part of pgtrial, not of PostgreSQL.\n", ""),
        )
    )
    assert ours == options
    assert theirs[-1].endswith(">\n")
    assert mine == ["Report bugs to <", "the maintainers of pgtrial>.\n"]


def test_a_link_named_pgbench_is_pgbench(both, loaded, tmp_path):
    def act(program):
        if program.name == "ours":
            link = tmp_path / "pgbench"
            link.symlink_to(program.command[0])
            program = replace(program, command=(str(link),))
        return settled(program.run(loaded(18), "-n", "-S", "-t", "3"))

    theirs, mine = both(act)
    assert mine == theirs
