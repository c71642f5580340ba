"""The frozen study file holds everything but secrets, and reads back as the same study."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, has_secrets, thaw
from pgtrial.report.history import file_name
from pgtrial.store.study_file import build_study

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=40)


@given(arms=st.lists(NAMES, min_size=2, max_size=3, unique=True), value=TEXTS, question=TEXTS)
def test_any_study_survives_freezing(arms, value, question):
    setups = {arm: {"settings": {"log_line_prefix": value}, "setup_sql": [f"SELECT {value}"]} for arm in arms}
    spec = build_study({"study": {"question": question}, "arms": setups}, "test")
    assert thaw(freeze(spec)) == spec
    assert list(thaw(freeze(spec)).arms) == arms


def test_every_default_is_written_out():
    frozen = freeze(build_study({"arms": {"a": {}, "b": {}}}, "test"))
    for line in (
        'protocol = "prepared"',
        'warmup = "auto"',
        "margin = 0.01",
        "stop_early = true",
        "foreign_keys = false",
    ):
        assert line in frozen


def test_a_study_that_was_frozen_with_the_key_for_timed_work_of_pgtrial_reads_back_without_it():
    spec = build_study({"arms": {"a": {}, "b": {}}}, "test")
    before, section, after = freeze(spec).partition("[verdict]\n")
    assert section
    assert thaw(f"{before}{section}canary = true\n{after}") == spec


def test_a_study_that_was_frozen_with_former_names_of_keys_reads_back_by_those_of_today():
    monitored = {"dsn": "host=a", "monitoring": {"cloudwatch": "my-db"}}
    spec = build_study(
        {
            "load": {"threads": 4},
            "server": {"monitoring": {"cloudwatch": "both"}},
            "arms": {"metrics": monitored, "jobs": {"dsn": "host=b"}},
            "fleet": {"share_machines": True},
            "verdict": {"metrics": ["tps"]},
        },
        "test",
    )
    before = freeze(spec).replace("threads = 4", "jobs = 4").replace("monitoring = {", "metrics = {")
    before = before.replace("share_machines = true", "pack = true")
    assert before.count("metrics = {") == 2
    assert thaw(before) == spec


@pytest.mark.parametrize(
    ("section", "key", "value", "name"),
    [
        ("load", "jobs", 4, "threads"),
        ("server", "metrics", {"cloudwatch": "my-db"}, "monitoring"),
        ("arms.a", "metrics", {"cloudwatch": "my-db"}, "monitoring"),
        ("fleet", "pack", True, "share_machines"),
    ],
)
def test_a_study_file_with_the_former_name_of_a_key_is_answered_with_that_of_today(section, key, value, name):
    data = {"arms": {"a": {}, "b": {}}}
    data |= {"arms": {"a": {key: value}, "b": {}}} if section == "arms.a" else {section: {key: value}}
    with pytest.raises(StudyError) as error:
        build_study(data, "a.toml")
    assert str(error.value) == f"a.toml: unknown key '{key}' in [{section}]; it is called {name} now"


def test_a_history_keeps_its_name_where_a_key_got_another_one():
    own = {"load": {"threads": 4}, "server": {"monitoring": {"cloudwatch": "my-db"}}}
    spec = build_study({**own, "arms": {"a": {"dsn": "host=a"}, "b": {"dsn": "host=b"}}}, "test")
    load, server, arm = (
        keys.model_dump(mode="json", exclude_none=True) for keys in (spec.load, spec.server, spec.arms["a"])
    )
    load["jobs"], server["metrics"] = load.pop("threads"), server.pop("monitoring")
    then = {"load": load, "server": server, "reference": arm, "metrics": [], "scripts": {}}
    digest = hashlib.sha256(json.dumps(then, sort_keys=True).encode()).hexdigest()
    assert file_name(spec) == f"study-{digest[:8]}"


def test_the_name_of_published_figures_is_frozen_and_none_is_left_out():
    named = build_study({"study": {"published": "huge-pages"}, "arms": {"a": {}, "b": {}}}, "test")
    unnamed = build_study({"arms": {"a": {}, "b": {}}}, "test")
    assert thaw(freeze(named)).study.published == "huge-pages"
    assert "published" not in freeze(unnamed)


def test_passwords_are_left_out_in_both_forms_of_a_connection_string():
    spec = build_study(
        {
            "arms": {
                "uri": {"dsn": "postgresql://me:hunter2@db:5433/shop?sslmode=require"},
                "pairs": {"dsn": "host=db user=me password='hunter2 x'"},
            }
        },
        "test",
    )
    frozen = freeze(spec)
    assert has_secrets(spec)
    assert "hunter2" not in frozen
    assert not has_secrets(thaw(frozen))
    for kept in ("5433", "shop", "sslmode=require", "user=me"):
        assert kept in frozen


def test_a_connection_string_without_password_is_kept_as_it_is():
    spec = build_study(
        {"arms": {"a": {"dsn": "postgresql://me@db/shop"}, "b": {"dsn": "postgresql://me@db2/shop"}}}, "test"
    )
    assert not has_secrets(spec)
    assert '"postgresql://me@db/shop"' in freeze(spec)


def test_a_study_that_changes_the_host_survives_freezing():
    storage = {"fs": "ext4", "size": "2GB", "mount": ["nobarrier"], "wal": {"fs": "tmpfs", "size": 1000000}}
    arms = {"a": {"storage": storage, "huge_pages": "2MB"}, "b": {"sysctl": {"vm.swappiness": 1}, "cpus": "0"}}
    spec = build_study({"load": {"cpus": "1"}, "arms": arms}, "test")
    assert thaw(freeze(spec)) == spec
    assert spec.arms["a"].storage is not None
    assert spec.arms["a"].storage.size == 2_000_000_000


def test_storage_that_does_not_fit_together_is_refused():
    for storage, message in (
        ({"size": "1GB"}, "a volume needs fs"),
        ({"fs": "ext4", "on": "disk"}, "is not a place"),
        ({"on": "/srv", "mkfs": ["-q"]}, "pgtrial makes nothing in the directory /srv"),
        ({"fs": "tmpfs", "on": "/srv"}, "a tmpfs is in memory"),
        ({"fs": "ntfs"}, "must be 'ext4'"),
        ({"fs": "ext4", "size": "much"}, "is not a size"),
    ):
        with pytest.raises(StudyError, match=message):
            build_study({"arms": {"a": {"storage": storage}, "b": {}}}, "test")
    with pytest.raises(StudyError, match="storage, which is made for every trial"):
        build_study({"arms": {"a": {"storage": {"fs": "ext4"}, "reset": "vacuum"}, "b": {}}}, "test")
    with pytest.raises(StudyError, match="its server is a given one"):
        build_study({"arms": {"a": {"storage": {"fs": "ext4"}, "dsn": "host=x"}, "b": {}}}, "test")
