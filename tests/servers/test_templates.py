"""The store of templates."""

from __future__ import annotations

import pytest

from pgtrial.servers.templates import TemplateKey, Templates

KEY = TemplateKey("PostgreSQL 18.6 1234 initdb", "18.6", 20)


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "templates"
    root.mkdir()
    return Templates(root)


def _build(data):
    data.mkdir()
    (data / "PG_VERSION").write_text("18")


def test_a_template_is_built_once(store, tmp_path):
    built = []

    def build(data):
        built.append(data)
        _build(data)

    first = store.ensure(KEY, tmp_path / "staging-1", build)
    assert store.ensure(KEY, tmp_path / "staging-2", build) == first == store.find(KEY)
    assert len(built) == 1
    assert (first / "PG_VERSION").read_text() == "18"
    assert not (tmp_path / "staging-1").exists()


def test_a_failed_build_leaves_nothing(store, tmp_path):
    def build(data):
        _build(data)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.ensure(KEY, tmp_path / "staging", build)
    assert store.find(KEY) is None
    assert store.present() == []
    assert not (tmp_path / "staging").exists()


def test_of_two_labs_that_build_the_same_the_first_wins(store, tmp_path):
    def build(data):
        _build(data)
        store.ensure(KEY, tmp_path / "other", _build)

    assert store.ensure(KEY, tmp_path / "mine", build) == store.find(KEY)
    assert not (tmp_path / "mine").exists()


def test_a_directory_without_its_mark_is_no_template(store):
    (store.root / KEY.name / "data").mkdir(parents=True)
    assert store.find(KEY) is None
    assert store.unmarked() == [store.root / KEY.name]


def test_names_say_what_they_hold_and_differ_by_all_that_matters():
    keys = [
        KEY,
        TemplateKey("another build", "18.6", 20),
        TemplateKey(KEY.kind, "18.6", 21),
        TemplateKey(KEY.kind, "18.6", 20, fillfactor=90),
        TemplateKey(KEY.kind, "18.6", 20, foreign_keys=True),
        TemplateKey(KEY.kind, "18.6", 0),
    ]
    assert len({key.name for key in keys}) == len(keys)
    assert KEY.name.startswith("pg18.6-s20-")
    assert keys[-1].name.startswith("pg18.6-empty-")
