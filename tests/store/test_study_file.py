"""A wrong study file is told from a right one, in one sentence that says where and what to do."""

from pathlib import Path

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.store.study_file import build_study, bundled_studies, read_study

ARMS = "[arms.a]\n[arms.b]\nsettings = { work_mem = '64MB' }\n"

WRONG = {
    "unknown key names the nearest": (ARMS + "[load]\nclient = 8\n", ["unknown key 'client' in [load]", "'clients'"]),
    "a key that is gone": (
        ARMS + "[verdict]\ncanary = true\n",
        ["unknown key 'canary' in [verdict]; the key does not exist any more, since", "remove it"],
    ),
    "unknown section names the nearest": (ARMS + "[verdikt]\nmargin = '1%'\n", ["'verdikt'", "did you mean 'verdict'"]),
    "unknown key of an arm": ("[arms.a]\nsetings = {}\n[arms.b]\n", ["in [arms.a]", "did you mean 'settings'"]),
    "unknown key of metrics": (
        "[arms.a]\ndsn = 'host=db'\nmonitoring = { cloudwach = 'x' }\n[arms.b]\n",
        ["'cloudwach' in [arms.a.monitoring]", "did you mean 'cloudwatch'?"],
    ),
    "unknown key of a WAL volume": (
        "[arms.a]\nstorage = { fs = 'ext4', wal = { fs = 'xfs', siz = 1 } }\n[arms.b]\n",
        ["'siz' in [arms.a.storage.wal]", "did you mean 'size'?"],
    ),
    "unknown key of an arm called as a table": (
        "[arms.tasks]\nsetings = {}\n[arms.b]\n",
        ["in [arms.tasks]", "did you mean 'settings'"],
    ),
    "a setting outside settings": ("[arms.a]\nwork_mem = '1MB'\n[arms.b]\n", ["settings = { work_mem = ... }"]),
    "a query without a statement": (
        ARMS + "[load]\nquery = '/* a /* b */ c */ ; -- SELECT 1'\n",
        ["line 5: [load] query: the query is empty; write the statement"],
    ),
    "SQL of an arm without a statement": (
        "[arms.a]\nsetup_sql = ['SELECT 1', ' ; ']\n[arms.b]\n",
        ["line 2: [arms.a] setup_sql has a text without a statement; write SQL, or remove the text"],
    ),
    "SQL of all arms without a statement": (
        "[server]\nsetup_sql = '-- none'\n" + ARMS,
        ["line 2: [server] setup_sql has a text without a statement"],
    ),
    "an undo without a statement": (
        ARMS + "[load]\nworkload = 'job:'\n[load.job]\ncommand = 'true'\nundo = ' '\n",
        ["line 8: [load.job] undo has a text without a statement"],
    ),
    "a metric without a statement": (
        ARMS + "[metrics.size]\nsql = ';'\nbetter = 'less'\n",
        ["line 5: [metrics.size] sql has a text without a statement"],
    ),
    "no arms": ("[load]\nclients = 8\n", ["at least two arms"]),
    "one arm": ("[arms.only]\n", ["at least two arms"]),
    "unknown workload names the nearest": (ARMS + "[load]\nworkload = 'tpcb'\n", ["'tpcb'", "did you mean tpcb-like?"]),
    "a workload like none": (ARMS + "[load]\nworkload = 'xyz'\n", ["'xyz'", "tpcb-like, simple-update, select-only"]),
    "a path that is no workload": (ARMS + "[load]\nworkload = 'xyz'\n", ["a script of your own is named by its path"]),
    "a time limit without tries": (ARMS + "[load]\nlatency_limit = '1s'\n", ["[load]", "set max_tries as well"]),
    "a time limit at a rate": (
        ARMS + "[load]\nlatency_limit = '1s'\nmax_tries = 2\nrate = 100\n",
        ["[load]", "flatter the response time"],
    ),
    "unknown published figures name the nearest": (
        ARMS + "[study]\npublished = 'hugepages'\n",
        ["[study] published", "'hugepages'", "did you mean 'huge-pages'?"],
    ),
    "published figures like none": (ARMS + "[study]\npublished = 'xyz'\n", ["'xyz'", "os-comparison"]),
    "no rate": (ARMS + "[load]\nrate = [100, 0]\n", ["[load] rate, item 2", "greater than 0"]),
    "negative tries": (ARMS + "[load]\nmax_tries = -1\n", ["[load] max_tries", "greater than or equal to 0"]),
    "bad duration": (ARMS + "[load]\nduration = 'soon'\n", ["[load] duration", "'soon' is not a duration"]),
    "no policy": (ARMS + "[load]\non_server_loss = 'retry'\n", ["[load] on_server_loss", '"wait 60s"']),
    "a wait without end": (ARMS + "[load]\non_server_loss = 'wait 25h'\n", ["[load] on_server_loss", "1s to 24h"]),
    "a wait of sysbench": (
        ARMS + "[load]\nworkload = 'oltp_read_only'\non_server_loss = 'wait 60s'\n",
        ["[load]", "not for tests of sysbench"],
    ),
    "part of a second": (ARMS + "[load]\nduration = '1500ms'\n", ["[load] duration", "whole number of seconds"]),
    "bad share": (ARMS + "[verdict]\nmargin = 'small'\n", ["[verdict] margin", "'small' is not a share"]),
    "an unknown metric names the nearest": (
        ARMS + "[verdict]\nmetrics = ['tps', 'p99,9']\n",
        ["[verdict] metrics", "'p99,9' is not a metric", "did you mean 'p99.9'?"],
    ),
    "a metric like none": (ARMS + "[verdict]\nmetrics = 'xyz'\n", ["'xyz'", "metrics are tps, response, p50"]),
    "a metric twice": (
        ARMS + "[verdict]\nmetrics = ['p99', 'p99']\n",
        ["[verdict] metrics", "lists p99 more than once"],
    ),
    "tps at a rate": (
        ARMS + "[load]\nrate = 100\n[verdict]\nmetrics = ['p99', 'tps']\n",
        ["[verdict] metrics", '"tps" is the rate itself'],
    ),
    "metrics of tasks": (
        ARMS + "[load]\nworkload = 'app-tasks'\n[verdict]\nmetrics = 'p99'\n",
        ["[verdict] metrics", "has criteria of its own"],
    ),
    "no price": (
        "[arms.a]\nprice = '1 USD/h'\n[arms.b]\nprice = 'cheap'\n",
        ["[arms.b] price", "'cheap' is not a price"],
    ),
    "a price of nothing": ("[arms.a]\nprice = '0 USD/h'\n[arms.b]\n", ["[arms.a] price", "is not a price"]),
    "a price of one arm alone": ("[arms.a]\nprice = '1 USD/h'\n[arms.b]\n", ["[arms.b] has no price", "or no arm"]),
    "prices in two currencies": (
        "[arms.a]\nprice = '1 USD/h'\n[arms.b]\nprice = '1 EUR/h'\n",
        ["EUR and USD cannot be compared"],
    ),
    "transactions per cent without prices": (
        ARMS + "[verdict]\nmetrics = 'transactions per cent'\n",
        ["[verdict] metrics", 'price = "0.42 USD/h"'],
    ),
    "no clients": (ARMS + "[load]\nclients = [8, 0]\n", ["[load] clients, item 2", "greater than or equal to 1"]),
    "the same clients twice": (ARMS + "[load]\nclients = [8, 8]\n", ["[load] clients", "lists 8 more than once"]),
    "unknown protocol": (
        ARMS + "[load]\nprotocol = 'fast'\n",
        ["[load] protocol", "'simple', 'extended' or 'prepared'"],
    ),
    "wrong type of a setting": ("[arms.a]\nsettings = { x = [1] }\n[arms.b]\n", ["[arms.a] settings.x", "string"]),
    "bad TOML with its line": ("[load]\nclients = = 8\n", ["is not valid TOML", "line 2"]),
    "version and connection string": (
        "[arms.a]\npostgres = '18'\ndsn = 'host=db'\n[arms.b]\n",
        ["[arms.a]", "both dsn and postgres"],
    ),
    "bad connection string": ("[arms.a]\ndsn = 'no equals sign'\n[arms.b]\n", ["[arms.a] dsn", "postgresql://"]),
    "setup_sql on a given server": (
        "[arms.a]\ndsn = 'host=db'\nsetup_sql = ['CREATE INDEX x ON y (z)']\n[arms.b]\n",
        ["[arms.a]", "setup_sql", "fresh copy", "; have pgtrial make the server (postgres and no dsn)"],
    ),
    "setup_sql on a copy that is used again": (
        "[arms.a]\nreset = 'vacuum'\nsetup_sql = ['CREATE INDEX x ON y (z)']\n[arms.b]\n",
        ["[arms.a]", "setup_sql", "fresh copy", "; leave reset out"],
    ),
    "what pgtrial would have to make a given server for": (
        "[arms.a]\ndsn = 'host=db'\nhuge_pages = '2MB'\nsysctl = { 'vm.swappiness' = 1 }\n[arms.b]\n",
        ["[arms.a] has huge_pages and sysctl", "its server is a given one", "remove them"],
    ),
    "the same of all that share one": (
        "[server]\ndsn = 'host=db'\nthp = 'never'\n[arms.a]\n[arms.b]\n",
        ["[server] has thp", "remove it"],
    ),
    "the same of an arm that shares one": (
        "[server]\ndsn = 'host=db'\n[arms.a]\ncpus = '0'\n[arms.b]\n",
        ["[arms.a] has cpus", "remove it"],
    ),
    "a file of ours for a kernel parameter": (
        "[arms.a]\nsysctl = { '.etc.motd' = 1 }\n[arms.b]\n",
        ["[arms.a] sysctl", "'.etc.motd' is not the name of a kernel parameter"],
    ),
    "a text that no program takes": (
        "[arms.a]\nenvironment = { A = 'x', B = \"\\u0000\" }\n[arms.b]\n",
        ["has a text with the character \\u0000"],
    ),
    "the name of no variable": (
        "[arms.a]\nenvironment = { '-u' = '1' }\n[arms.b]\n",
        ["[arms.a] environment", "'-u' is not the name of a variable"],
    ),
    "copy of a given server": (
        "[arms.a]\ndsn = 'host=db'\nreset = 'copy'\n[arms.b]\n",
        ["[arms.a]", 'reset = "copy"', "its server is a given one", 'write "vacuum" or "none", or have pgtrial make'],
    ),
}


def refusal(file: Path, text: str) -> str:
    """Returns the message with which a study file that has this text is refused."""
    file.write_text(text)
    with pytest.raises(StudyError) as refused:
        read_study(file)
    return str(refused.value)


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_study_is_refused_in_one_sentence_that_names_file_and_key(tmp_path, text, expected):
    file = tmp_path / "question.toml"
    message = refusal(file, text)
    assert "\n" not in message
    assert ("question.toml" in message) or "connection string" in message
    for words in expected:
        assert words in message


def test_a_password_in_a_bad_connection_string_is_not_repeated(tmp_path):
    assert "hunter2" not in refusal(tmp_path / "s.toml", "[arms.a]\ndsn = 'host=db password=hunter2 oops'\n[arms.b]\n")


def test_a_missing_file_and_a_missing_bundled_study_are_named(tmp_path):
    with pytest.raises(StudyError, match=r"no study file .*absent\.toml.*pgtrial list"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(StudyError, match=r"no bundled study is called @dem; did you mean 'demo'\?"):
        read_study("@dem")


def test_the_name_is_the_files_unless_the_study_has_its_own(tmp_path):
    (tmp_path / "wal.toml").write_text(ARMS)
    assert read_study(tmp_path / "wal.toml").study.name == "wal"
    (tmp_path / "wal.toml").write_text("[study]\nname = 'log'\n" + ARMS)
    assert read_study(tmp_path / "wal.toml").study.name == "log"


def test_numbers_and_booleans_become_what_postgresql_would_write(tmp_path):
    (tmp_path / "s.toml").write_text(
        "[arms.a]\npostgres = 17\nsettings = { jit = false, max_connections = 50, random_page_cost = 1.1 }\n[arms.b]\n"
    )
    setup = read_study(tmp_path / "s.toml").arms["a"]
    assert setup.postgres == "17"
    assert setup.settings == {"jit": "off", "max_connections": "50", "random_page_cost": "1.1"}


def test_an_arm_overrides_the_server_setting_by_setting():
    spec = build_study(
        {
            "server": {"settings": {"jit": "off", "work_mem": "4MB"}, "setup_sql": ["SELECT 1"]},
            "arms": {"a": {}, "b": {"settings": {"work_mem": "64MB"}, "setup_sql": ["SELECT 2"]}},
        },
        "test",
    )
    assert spec.resolved("a").settings == {"jit": "off", "work_mem": "4MB"}
    assert spec.resolved("b").settings == {"jit": "off", "work_mem": "64MB"}
    assert spec.resolved("b").setup_sql == ["SELECT 1", "SELECT 2"]


def test_a_single_text_stands_for_a_list_of_one():
    storage = {"fs": "ext4", "mount": "noatime", "mkfs": "-b4096"}
    arm = {"setup_sql": "SELECT 1", "initdb": "-k", "storage": storage}
    found = build_study({"arms": {"a": {}, "b": arm}}, "t").resolved("b")
    assert (found.setup_sql, found.initdb) == (["SELECT 1"], ["-k"])
    assert found.storage is not None
    assert (found.storage.mount, found.storage.mkfs) == (["noatime"], ["-b4096"])


def test_every_bundled_study_is_valid_and_asks_a_question():
    studies = bundled_studies()
    assert {"demo", "postgres-versions", "synchronous-commit"} <= studies.keys()
    assert all(question.endswith("?") for question in studies.values())


ALL_AT_ONCE = """\
[load]
foo = 3
clients = "many"

[load.suite]
runs = 0

[arms.a]
settings = { work_mem = "1MB" }
postgress = "15"
[arms."b c"]
thp = "rarely"
[verdict]
margin = 5
"""


def test_all_mistakes_of_a_file_are_told_at_once_each_with_its_line(tmp_path):
    file = tmp_path / "s.toml"
    message = refusal(file, ALL_AT_ONCE)
    assert message.startswith(f"{file}: 6 mistakes: (1) line 2: unknown key 'foo' in [load]")
    for words in (
        "(2) line 3: [load] clients must be a whole number, such as 8 (3)",
        "(3) line 6: [load] suite.runs must be",
        "(4) line 10: unknown key 'postgress' in [arms.a]; did you mean 'postgres'?",
        "(5) line 12: [arms.b c] thp must be 'never', 'madvise' or 'always'",
        "(6) line 14: [verdict] margin: 5 is more than the whole, which is 1; write 5% in quotes",
    ):
        assert words in message


def test_refused_combinations_of_several_arms_are_told_at_once(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text("[arms.a]\ndsn = 'host=db'\nhuge_pages = '2MB'\n[arms.b]\ndsn = 'host=db'\npostgres = '15'\n")
    with pytest.raises(
        StudyError, match=r"2 mistakes: \(1\) line 1: \[arms\.a\] has huge_pages.*\(2\) line 4: \[arms\.b"
    ):
        read_study(file)


def test_a_section_called_wrongly_is_one_mistake_and_not_also_the_missing_one(tmp_path):
    file = tmp_path / "s.toml"
    message = refusal(file, "[load]\nworkload = 'select-only'\n[arm.a]\n[arm.b]\n")
    assert message == f"{file}: line 3: unknown section or key 'arm'; did you mean 'arms'?"


NOT_TOML = {
    "duration = 30s": 'a text is written in quotes: duration = "30s"',
    "workload = select-only": 'a text is written in quotes: workload = "select-only"',
    "query = SELECT max(a) FROM t": 'a text is written in quotes: query = "SELECT max(a) FROM t"',
    "workload = it's mine": 'a text is written in quotes: workload = "it\'s mine"',
    "clients = 4, 8": "a list is written in brackets: clients = [4, 8]",
    "clients: 4": "write = in place of the colon: clients = 4",
    "check = yes": 'write check = true, or check = "yes" where a text is meant',
    "workload = “select-only”": 'write plain quotes: workload = "select-only"',
    "values = { a = orders.customer }": 'a text is written in quotes: a = "orders.customer"',
    "clients = 1\nclients = 2": "clients has a value already: write each key once",
    "sysbench = { tables = 1, tables = 2 }": "write each key once",
    "clients\u00a0= 4": "the line has a no-break space (U+00A0), which is no space to TOML; write plain spaces",
    "clients =\u200b 4": "the line has a zero width space (U+200B), which is no space to TOML; write plain spaces",
    'workload = "C:\\Users\\new.sql"': (
        "in double quotes a backslash begins an escape; write single quotes: workload = 'C:\\Users\\new.sql'"
    ),
    "query = \"SELECT '\\d'\"": (
        "in double quotes a backslash begins an escape; write each backslash twice, or the text in single quotes"
    ),
    "[arms.größe]": 'a name with letters beyond ASCII is written in quotes: [arms."größe"]',
}


@pytest.mark.parametrize(("lines", "cure"), NOT_TOML.items(), ids=NOT_TOML.keys())
def test_a_line_that_is_no_toml_is_shown_as_it_is_written(tmp_path, lines, cure):
    file = tmp_path / "s.toml"
    file.write_text(f"[load]\n{lines}\n{ARMS}")
    with pytest.raises(StudyError, match=r"is not valid TOML.*line \d") as refused:
        read_study(file)
    assert str(refused.value).endswith(f"; {cure}")


UNCLOSED = {
    'workload = "a.sql': 'the text "a.sql has no closing quote; write workload = "a.sql"',
    "workload = 'a.sql": "the text 'a.sql has no closing quote; write workload = 'a.sql'",
    'workload = ["a.sql", "b.sql]': 'the text "b.sql] has no closing quote; write workload = ["a.sql", "b.sql"]',
    'values = { a = "t.a }': 'the text "t.a } has no closing quote; write values = { a = "t.a" }',
    '"clients = 4': 'the text "clients = 4 has no closing quote; write clients = 4',
}


@pytest.mark.parametrize(("line", "told"), UNCLOSED.items(), ids=UNCLOSED.keys())
def test_a_text_without_its_closing_quote_is_named_with_its_line(tmp_path, line, told):
    file = tmp_path / "s.toml"
    arms = ARMS.replace(chr(39), chr(34))
    message = refusal(file, f"[study]\nquestion = \"Is it 'on'?\" # it's\n[load]\n{line}\n{arms}")
    assert message == f"{file} is not valid TOML: line 4: {told}"


def test_a_name_with_a_period_is_not_taken_for_a_setting(tmp_path):
    file = tmp_path / "s.toml"
    message = refusal(file, "[arms.16.4]\npostgres = '16'\n[arms.17]\n")
    told = "unknown key '4' in [arms.16]; a name with a period is written in quotes: [arms.\"16.4\"]"
    assert message == f"{file}: line 1: {told}"


def test_too_many_brackets_are_one_sentence(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(f"[load]\nclients = {'[' * 3000}\n{ARMS}")
    with pytest.raises(StudyError, match="more nested brackets than can be read"):
        read_study(file)


def test_a_table_that_stands_twice_is_named_as_it_is_written(tmp_path):
    file = tmp_path / "s.toml"
    message = refusal(file, "[arms.a]\n[arms.index]\nthp = 'never'\n[arms.index]\nthp = 'always'\n")
    told = "[arms.index] occurs twice (lines 2 and 4); write each table once, with all of its keys"
    assert message == f"{file} is not valid TOML: {told}"


def test_a_key_within_a_long_text_is_not_taken_for_the_line_of_a_key(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text("[load]\nquery = '''\nSELECT 1 AS\nclients = 4\n'''\nclients = 'x'\n" + ARMS)
    with pytest.raises(StudyError, match=r"line 6: \[load\] clients must be"):
        read_study(file)
