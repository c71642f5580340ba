"""The store of templates: each is made once, is there as a whole or not at all, and is never used when damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from pgtrial.files.locks import holding_name
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers.builds.kept import Builds
from pgtrial.servers.kept_templates import TemplateInUse, Templates
from pgtrial.servers.state_limit import trim
from pgtrial.servers.templates import TemplateKey, TemplateOrder
from pgtrial.store.state import state_limit

KEY = TemplateKey("PostgreSQL 18.6 1234 initdb", "18.6", 20)


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "templates"
    root.mkdir()
    return Templates(root)


def _build(data):
    (data / "base").mkdir(parents=True)
    (data / "PG_VERSION").write_text("18")
    (data / "base" / "1").write_bytes(b"x" * 8192)
    # a kernel that counts time in some milliseconds shows what is written later as written later
    os.utime(data / "base" / "1", (0, 0))


def _order(build=_build, key=KEY):
    return TemplateOrder(key, "scale 20", {"fsync": "off"}, build)


def _unheard(sentence):
    pytest.fail(f"nothing was to be said: {sentence}")


def _never(data):
    pytest.fail("nothing was to be made")


def _kept(store):
    return [template.name for template in store.kept()]


def _another(store, study=""):
    """Returns the same store of templates, opened again as another lab would for this study."""
    return Templates(store.root, study)


def test_a_template_is_made_once(store, tmp_path):
    first = store.ensure(_order(), tmp_path / "staging-1", _unheard, [])
    assert store.ensure(_order(_never), tmp_path / "staging-2", _unheard, []) == first == store.find(KEY)
    store.close()
    later = _another(store)
    assert later.ensure(_order(_never), tmp_path / "staging-3", _unheard, []) == first
    assert (first / "PG_VERSION").read_text() == "18"
    assert not list(tmp_path.glob("staging-*"))


def test_a_failed_making_leaves_nothing(store, tmp_path):
    def build(data):
        _build(data)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.ensure(_order(build), tmp_path / "staging", _unheard, [])
    assert store.find(KEY) is None
    assert _kept(store) == []
    assert not list(store.root.iterdir())
    assert not (tmp_path / "staging").exists()


def test_of_two_labs_that_want_the_same_one_makes_it_and_the_other_waits(store, tmp_path):
    waits, said = threading.Event(), []

    def on_event(sentence):
        said.append(sentence)
        waits.set()

    def build(data):
        other.start()
        assert waits.wait(60)
        _build(data)

    other = threading.Thread(
        target=lambda: _another(store).ensure(_order(_never), tmp_path / "other", on_event, []), daemon=True
    )
    made = store.ensure(_order(build), tmp_path / "mine", _unheard, [])
    other.join(60)
    assert not other.is_alive()
    assert made == store.find(KEY)
    assert said == [f"waiting for another pgtrial, which makes or checks the template {KEY.name} (scale 20)"]


def test_a_lab_that_waits_for_one_that_fails_makes_the_template_itself(store, tmp_path):
    waits, found = threading.Event(), []

    def build(data):
        other.start()
        assert waits.wait(60)
        raise RuntimeError

    def wait(sentence):
        waits.set()

    other = threading.Thread(
        target=lambda: found.append(_another(store).ensure(_order(), tmp_path / "other", wait, [])), daemon=True
    )
    with pytest.raises(RuntimeError):
        store.ensure(_order(build), tmp_path / "mine", _unheard, [])
    other.join(60)
    assert found == [store.find(KEY)]


_MAKER = """
import sys, time
from pathlib import Path
from tests.servers.test_templates import KEY, _build, _order
from pgtrial.servers.kept_templates import Templates
def build(data):
    _build(data)
    print("half made", flush=True)
    time.sleep(600)
Templates(Path(sys.argv[1])).ensure(_order(build), Path(sys.argv[2]), print, [])
"""


def test_a_killed_lab_leaves_no_template_and_no_lock(store, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    maker = subprocess.Popen(
        [sys.executable, "-c", _MAKER, str(store.root), str(tmp_path / "killed")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == "half made\n"
    with pytest.raises(TemplateInUse):
        store.remove(KEY.name)
    assert store.remove_unfinished() == []
    assert [path.suffix for path in store.root.iterdir()] == [".lock"]
    maker.kill()
    maker.wait()
    assert store.find(KEY) is None
    assert store.remove_unfinished() == []
    assert list(store.root.iterdir()) == []
    assert store.ensure(_order(), tmp_path / "mine", _unheard, []) == store.find(KEY)


def _shorter(data):
    os.truncate(data / "base" / "1", 100)


def _written(data):
    with (data / "base" / "1").open("r+b") as file:
        file.write(b"y")


def _missing(data):
    (data / "PG_VERSION").unlink()


def _foreign(data):
    (data / "postmaster.pid").write_text("1")


def _without_list(data):
    (data.parent / "files.json").unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_shorter, "data/base/1 has 100 bytes instead of 8,192"),
        (_written, "data/base/1 was changed after the template was made"),
        (_missing, "data/PG_VERSION is missing"),
        (_foreign, "data/postmaster.pid is a file that does not belong to it"),
        (_without_list, "files.json is missing or damaged"),
    ],
)
def test_a_damaged_template_is_never_used_but_made_anew_with_one_sentence(store, tmp_path, damage, words):
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    damage(data)
    assert store.find(KEY) is None
    assert [template.fault for template in store.kept()] == [words]
    said = []
    assert store.ensure(_order(), tmp_path / "staging", _unheard, said) == data
    assert said == [f"the template {KEY.name} is damaged ({words}); it is made again"]
    assert (data / "base" / "1").read_bytes() == b"x" * 8192
    assert store.ensure(_order(_never), tmp_path / "staging", _unheard, []) == data == store.find(KEY)


def test_a_damaged_template_stays_while_another_lab_uses_it(store, tmp_path):
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    _missing(data)
    with pytest.raises(ArmError, match=r"is damaged \(data/PG_VERSION is missing\) and another pgtrial uses it; try"):
        _another(store).ensure(_order(_never), tmp_path / "staging", _unheard, [])
    assert (data / "base" / "1").exists()


def test_a_template_in_use_is_not_removed(store, tmp_path):
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    other = _another(store)
    assert [template.in_use for template in other.kept()] == [True]
    assert other.idle_bytes() == 0
    with pytest.raises(TemplateInUse, match=f"the template {KEY.name} is in use by a running pgtrial; try again"):
        other.remove(KEY.name)
    assert data.exists()
    store.close()
    assert [template.in_use for template in other.kept()] == [False]
    assert other.idle_bytes() >= 8192
    other.remove(KEY.name)
    assert list(store.root.iterdir()) == []


def test_a_template_that_disappears_under_its_lab_is_made_again(store, tmp_path):
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    for path in (data.parent / "template.json", data.parent / "lock"):
        path.unlink()
    assert [path.name for path in _another(store).remove_unfinished()] == [KEY.name]
    assert store.ensure(_order(), tmp_path / "staging", _unheard, []) == data
    assert (data / "PG_VERSION").exists()


def test_a_directory_without_its_record_is_no_template(store):
    (store.root / KEY.name / "data").mkdir(parents=True)
    assert store.find(KEY) is None
    assert store.unfinished() == [store.root / KEY.name]
    assert store.remove_unfinished() == [store.root / KEY.name]
    assert list(store.root.iterdir()) == []


def test_a_directory_that_a_lab_is_just_removing_is_nobodys_leftover(store):
    (store.root / KEY.name / "data").mkdir(parents=True)
    with holding_name(store.root / KEY.name, lambda: None):
        assert _another(store).unfinished() == []
    assert [path.name for path in _another(store).unfinished()] == [KEY.name]


def test_what_is_listed_says_what_a_template_holds_and_which_studies_used_it(store, tmp_path):
    key = TemplateKey("PostgreSQL 18.6 1234 initdb --wal-segsize=1", "18.6", 20, fillfactor=90, foreign_keys=True)
    _another(store, "/results/first").ensure(_order(key=key), tmp_path / "staging", _unheard, [])
    for number in range(30):
        later = _another(store, f"/results/{number}")
        later.ensure(_order(_never, key), tmp_path / "staging", _unheard, [])
        later.close()
    (listed,) = store.kept()
    assert (listed.name, listed.postgres) == (key.name, "18.6")
    assert listed.contents == "scale 20, fillfactor 90, foreign keys, initdb --wal-segsize=1"
    assert listed.bytes_on_disk >= 8192
    assert listed.made <= listed.last_used
    assert listed.studies == [f"/results/{number}" for number in range(29, 9, -1)]
    assert listed.fault is None


def test_a_template_of_another_pgtrial_is_listed_and_not_used(store, tmp_path, monkeypatch):
    monkeypatch.setattr("pgtrial.servers.templates.DATA_FORMAT", 1)
    store.ensure(_order(), tmp_path / "staging", _unheard, [])
    monkeypatch.undo()
    assert store.find(KEY) is None
    (listed,) = store.kept()
    assert listed.fault == "it was made by another version of pgtrial, or before an upgrade of the C library"


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


def test_what_somebody_removes_meanwhile_is_no_error(store, tmp_path, monkeypatch):
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    scandir = os.scandir

    def look(path):
        with scandir(path) as scanned:
            entries = list(scanned)
        for entry in entries:
            if entry.name == "PG_VERSION":
                (data / entry.name).unlink()
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", look)
    assert _another(store).find(KEY) is None
    assert not (data / "PG_VERSION").exists()


def test_a_directory_that_is_exchanged_while_it_is_looked_through_shows_no_names_of_another(
    store, tmp_path, monkeypatch
):
    """The servers' account owns it, and everybody may read the list."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret").touch()
    looked = os.scandir
    exchanged = []

    @contextmanager
    def scandir(place):
        of_the_data = os.path.samestat(os.stat(place), base.parent.stat())
        if of_the_data and base.is_symlink():
            base.unlink()
            base.with_name("was").rename(base)
        with looked(place) as entries:
            yield entries
        if of_the_data:
            exchanged.append(base.rename(base.with_name("was")))
            base.symlink_to(other)

    base = tmp_path / "staging" / "data" / "base"
    monkeypatch.setattr(os, "scandir", scandir)
    data = store.ensure(_order(), tmp_path / "staging", _unheard, [])
    assert exchanged
    assert "secret" not in (data.parent / "files.json").read_text()


def _key(scale):
    return TemplateKey("PostgreSQL 18.6 1234 initdb", "18.6", scale)


def _used(store, scale, day):
    """A template that was last used on this day."""
    store.ensure(_order(key=_key(scale)), store.root.parent / f"staging-{scale}", _unheard, [])
    store.close()
    uses = {"by_study": {"": f"2026-11-{day:02}T00:00:00Z"}}
    (store.root / _key(scale).name / "uses.json").write_text(json.dumps(uses))


def _limited(store, limit):
    """Templates that are alone in their state directory."""
    state = store.root.parent
    return Templates(store.root, make_room=lambda kept: trim(kept, Builds(state / "builds"), state / "installs", limit))


def test_beyond_the_limit_the_least_recently_used_go_and_those_in_use_stay(store, tmp_path):
    for scale, day in ((1, 3), (2, 1), (3, 2), (4, 4)):
        _used(store, scale, day)
    size = store.kept()[0].bytes_on_disk
    notes = []
    other = Templates(store.root)
    other.ensure(_order(_never, _key(2)), tmp_path / "other", _unheard, [])
    (store.root / _key(2).name / "uses.json").write_text('{"by_study": {"": "2026-11-01T00:00:00Z"}}')
    limited = _limited(store, int(3.5 * size))
    limited.ensure(_order(key=_key(5)), tmp_path / "new", _unheard, notes)
    assert set(_kept(store)) == {_key(scale).name for scale in (2, 4, 5)}
    [sentence] = notes
    assert sentence.startswith("removed 2 templates of ")
    assert sentence.endswith("(PGTRIAL_STATE_LIMIT)")
    limited.ensure(_order(_never, _key(4)), tmp_path / "again", _unheard, notes)
    assert len(notes) == 1, "a template that is there already makes no other go"


def test_a_template_larger_than_the_limit_is_kept_while_it_is_in_use(store, tmp_path):
    limited = _limited(store, 1)
    limited.ensure(_order(), tmp_path / "staging", _unheard, [])
    assert _kept(store) == [KEY.name]


def test_the_limit_is_a_tenth_of_the_file_system_unless_it_is_set(tmp_path, monkeypatch):
    monkeypatch.delenv("PGTRIAL_STATE_LIMIT", raising=False)
    assert state_limit(tmp_path / "not" / "there") == int(0.1 * shutil.disk_usage(tmp_path).total)
    monkeypatch.setenv("PGTRIAL_STATE_LIMIT", "20GB")
    assert state_limit(tmp_path) == 20_000_000_000
    monkeypatch.setenv("PGTRIAL_STATE_LIMIT", "much")
    with pytest.raises(StudyError, match="PGTRIAL_STATE_LIMIT: 'much' is not a size; write for example 8GB"):
        state_limit(tmp_path)
