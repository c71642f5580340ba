"""Set-ups on the command line mean the same as in a study file."""

import pytest

from pgtrial.cli.capacity import capacity_command
from pgtrial.cli.compare import compare_command
from pgtrial.model.errors import StudyError
from pgtrial.model.study.capacity import CapacitySection
from pgtrial.store.comparison import name_arms, parse_setup

SETUPS = {
    "shared_buffers=2GB": {"settings": {"shared_buffers": "2GB"}},
    "jit=off,work_mem=64MB": {"settings": {"jit": "off", "work_mem": "64MB"}},
    "search_path=a,b,jit=off": {"settings": {"search_path": "a,b", "jit": "off"}},
    "shared_preload_libraries=": {"settings": {"shared_preload_libraries": ""}},
    "postgres=17": {"postgres": "17"},
    "postgres=17,jit=off": {"postgres": "17", "settings": {"jit": "off"}},
    "initdb=--no-data-checksums --wal-segsize=64": {"initdb": ["--no-data-checksums", "--wal-segsize=64"]},
    "extensions=git:.@HEAD": {"extensions": ["git:.@HEAD"]},
    "postgres=git:.@HEAD,build=-Dcassert=true -Doptimization=0": {
        "postgres": "git:.@HEAD",
        "build": ["-Dcassert=true", "-Doptimization=0"],
    },
    "default": {},
    "postgresql://me@db/shop": {"dsn": "postgresql://me@db/shop"},
    "host=db dbname=shop": {"dsn": "host=db dbname=shop"},
}


@pytest.mark.parametrize(("text", "expected"), SETUPS.items(), ids=SETUPS.keys())
def test_a_set_up_is_read(text, expected):
    assert parse_setup(text) == expected


NAMES = {
    "hosts by their first label": (
        ["host=db1.example.net dbname=shop", "postgresql://me:hunter2@db2.example.net/shop"],
        ["db1", "db2"],
    ),
    "hosts of one first label": (["host=db.a.net", "host=db.b.net"], ["db.a.net", "db.b.net"]),
    "addresses": (["host=10.0.0.1", "host=10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
    "ports": (["host=db port=5433", "host=db"], ["port 5433", "port 5432"]),
    "databases": (["host=db dbname=a", "host=db dbname=b"], ["a", "b"]),
    "users": (["host=db user=a", "host=db user=b"], ["a", "b"]),
    "nothing": (["host=db port=5433", "host=db port=5433"], ["db:5433", "db:5433 (2)"]),
    "given": (["old=host=db1", "new=postgres=18,jit=off", "work_mem=4MB"], ["old", "new", "work_mem=4MB"]),
    "given of one": (["a=postgresql://me@db1/shop", "host=db2"], ["a", "db2"]),
}


@pytest.mark.parametrize(("texts", "names"), NAMES.values(), ids=NAMES.keys())
def test_servers_are_named_after_what_distinguishes_them(texts, names):
    assert list(name_arms(texts)) == names


def test_a_name_is_no_part_of_the_set_up():
    assert name_arms(["a=host=db1 dbname=shop", "b=jit=off"]) == {
        "a": {"dsn": "host=db1 dbname=shop"},
        "b": {"settings": {"jit": "off"}},
    }


@pytest.mark.parametrize("text", ["idx: jit=off", "idx:jit=off", "my idx:"])
def test_a_colon_after_a_name_is_answered_with_the_form(text):
    with pytest.raises(StudyError, match=r"an arm is named by NAME=\.\.\., .*; separate settings by commas"):
        parse_setup(text)
    assert parse_setup("cluster_name=a:b") == {"settings": {"cluster_name": "a:b"}}


def test_sql_of_an_arm_before_its_trials_is_all_that_follows_its_key():
    sql = "create index on orders (customer, total)"
    assert name_arms(["plain=", f"indexed=setup={sql}", f"jit=off,setup_sql={sql}", f"setup={sql}"]) == {
        "plain": {},
        "indexed": {"setup_sql": [sql]},
        f"jit=off,setup_sql={sql}"[:56]: {"settings": {"jit": "off"}, "setup_sql": [sql]},
        f"setup={sql}": {"setup_sql": [sql]},
    }
    assert name_arms(["search_path=", "shared_preload_libraries="]) == {
        "search_path=": {"settings": {"search_path": ""}},
        "shared_preload_libraries=": {"settings": {"shared_preload_libraries": ""}},
    }


def test_something_else_is_refused_with_the_forms_there_are():
    for sql in ("none", "index=CREATE INDEX ON orders (customer)", "drop index a"):
        with pytest.raises(StudyError, match=r"is not a set-up: an index, .* 'index=setup=CREATE INDEX ON orders"):
            parse_setup(sql)
    with pytest.raises(StudyError, match=r"'fast' is not a set-up; write NAME=VALUE"):
        parse_setup("fast")


def test_arms_are_named_after_what_they_are_and_numbered_where_they_repeat():
    arms = name_arms(["jit=on", "jit=on", "postgresql://me:hunter2@db:5433/shop", "default"])
    assert list(arms) == ["jit=on", "jit=on (2)", "db:5433/shop", "default"]


def test_metrics_of_the_command_line_are_those_of_a_study_file(monkeypatch):
    begun = []
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: begun.append(spec) or 0)
    compare_command(["jit=on", "jit=off"], rate="500", metrics="p99, response,wal per transaction")
    assert begun[0].verdict.metrics == ["p99", "response", "wal per transaction"]
    compare_command(["jit=on", "jit=off"])
    assert begun[1].verdict.metrics == []


def test_an_unknown_metric_is_answered_with_the_option(monkeypatch):
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: 0)
    with pytest.raises(StudyError, match=r"--metrics: 'p999' is not a metric; did you mean 'p99.9'"):
        compare_command(["jit=on", "jit=off"], metrics="p999")


@pytest.fixture
def started(monkeypatch):
    """Returns the list of studies that commands would run."""
    specs = []
    monkeypatch.setattr("pgtrial.cli.compare.start", lambda spec, *_, **__: specs.append(spec) or 0)
    return specs


def test_the_command_of_the_capacity_asks_for_what_its_option_of_compare_does(started):
    compare_command(["jit=on", "jit=off"], capacity="p99=20ms, failures=1%", clients="4", seed=1)
    capacity_command(["jit=on", "jit=off"], p99="20ms", failures="1%", clients="4", seed=1)
    first, second = started
    assert first == second
    assert first.load.capacity == CapacitySection(percentile="p99", limit=0.02, failures=0.01)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"p99": "abc"}, "--p99: 'abc' is not a duration"),
        ({"p99": "0"}, "--p99: the limit must be longer than 0"),
        ({"p999": "0s"}, r"--p99\.9: the limit must be longer than 0"),
        ({"p99": "20ms", "failures": "200%"}, "--failures: write a share"),
        ({"p99": "20ms", "at_most": 0.0}, "--at-most: write a rate above 0"),
    ],
)
def test_what_is_wrong_with_a_capacity_is_told_with_its_option(options, said, started):
    with pytest.raises(StudyError, match=said):
        capacity_command(["jit=on", "jit=off"], **options)
    assert started == []


@pytest.mark.parametrize("limits", [{}, {"p99": "20ms", "p50": "1ms"}])
def test_a_capacity_has_one_limit(limits, started):
    with pytest.raises(StudyError, match=r"the limit of exactly one percentile; write for example --p99 20ms"):
        capacity_command(["jit=on", "jit=off"], **limits)
    assert not started


@pytest.mark.parametrize("text", ["20ms", "p99=", "", "=20ms"])
def test_another_promise_is_answered_with_the_form(text):
    with pytest.raises(
        StudyError,
        match=r"does not name a percentile and its limit; write for example --capacity p99=20ms,failures=0\.1%",
    ):
        compare_command(["jit=on", "jit=off"], capacity=text)


def test_a_suite_has_its_options_and_a_scale_with_decimals(started):
    compare_command(
        ["default", "jit=off"],
        workload="suite:joins",
        scale="0.1",
        runs=3,
        limit="2min",
        cache="os",
        unchecked="q07, q12",
    )
    (spec,) = started
    assert spec.load.scale == [0.1]
    suite = spec.load.suite
    assert (suite.runs, suite.limit_s, suite.cache, suite.unchecked) == (3, 120, "os", ["q07", "q12"])


def test_a_job_has_a_limit(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index.sql").write_text("CREATE INDEX ON pgbench_accounts (abalance);")
    compare_command(["default", "jit=off"], workload="job:index.sql", limit="90s")
    assert started[0].load.job.limit == 90


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runs": 3}, "--runs applies only to a suite of queries; add --workload suite:FOLDER, or remove --runs"),
        (
            {"workload": "job:index.sql", "cache": "os"},
            "--cache applies only to a suite of queries; add --workload suite:FOLDER",
        ),
        ({"workload": "tpcb-like", "unchecked": "q1"}, "--unchecked applies only to a suite of queries"),
        (
            {"limit": "2min"},
            "--limit applies only to a suite of queries or a job; add --workload suite:FOLDER or --workload",
        ),
        ({"workload": "suite:joins", "cache": "hot"}, "--cache must be 'warm', 'os' or 'cold'"),
        ({"workload": "suite:joins", "unchecked": "q77"}, "--unchecked: there is no query 'q77' in joins"),
    ],
)
def test_an_option_of_suites_that_does_not_fit_is_a_sentence(options, words, started):
    with pytest.raises(StudyError) as error:
        compare_command(["default", "jit=off"], **options)
    assert words in str(error.value)
