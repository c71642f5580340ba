"""A profile is an overlay: what it does not name is as all profiles have it, what it names is as it says."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.variants import profile_names, with_profile
from pgtrial.store.study_file import profiles_of, read_study

KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
SECTIONS = st.dictionaries(st.sampled_from(["load", "server", "verdict"]), st.dictionaries(KEYS, VALUES, max_size=3))

TEXT = """
[study]
question = "Common?"
[load]
scale = [10, 20]
clients = 8
[server]
settings = { work_mem = "4MB", jit = "off" }
storage = { fs = "ext4", size = "8GB", mount = ["noatime"] }
[arms.a]
[arms.b]
settings = { jit = "on" }
[profiles.quick]
study.question = "Quick?"
load.scale = 1
server.settings.work_mem = "64MB"
server.storage = { size = "2GB", mount = [] }
[profiles.full]
[profiles.other.arms]
x = {}
a = { settings = { jit = "on" } }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "variants.toml"
    path.write_text(TEXT)
    return path


@given(common=SECTIONS)
def test_a_profile_without_an_overlay_is_the_common_keys(common):
    before = copy.deepcopy(common)
    chosen = with_profile({**common, "profiles": {"full": {}}}, "full", "test")
    assert chosen.pop("study") == {"profile": "full"}
    assert chosen == before == common


def leaves(table, path=()):
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def at(table, path):
    for key in path:
        table = table[key]
    return table


@given(common=SECTIONS, overlay=SECTIONS)
def test_every_value_of_the_overlay_is_in_force_and_nothing_is_made_up(common, overlay):
    chosen = with_profile({**common, "profiles": {"p": overlay}}, "p", "test")
    del chosen["study"]
    for path, value in leaves(overlay):
        assert at(chosen, path) == value or (value == {} and isinstance(at(chosen, path), dict))
    known = dict(leaves(common)) | dict(leaves(overlay))
    for path, value in leaves(chosen):
        assert known[path] == value


def test_tables_are_merged_key_by_key_and_lists_are_replaced(file):
    spec = read_study(file, "quick")
    assert (spec.study.question, spec.load.scale, spec.load.clients) == ("Quick?", [1], [8])
    assert spec.server.settings == {"work_mem": "64MB", "jit": "off"}
    assert spec.server.storage is not None
    assert (spec.server.storage.fs, spec.server.storage.size) == ("ext4", 2_000_000_000)
    assert spec.server.storage.mount == []


def test_a_profile_that_names_arms_names_all_of_them_and_the_baseline(file):
    assert list(read_study(file, "full").arms) == ["a", "b"]
    spec = read_study(file, "other")
    assert list(spec.arms) == ["x", "a"]
    assert spec.arms["a"].settings == {"jit": "on"}


def test_the_first_profile_is_the_default_and_the_spec_names_it(file):
    assert profiles_of(file) == ["quick", "full", "other"]
    assert read_study(file) == read_study(file, "quick")
    assert read_study(file).study.profile == "quick"


def test_the_frozen_study_is_the_merged_one_and_needs_no_profiles(file, tmp_path):
    frozen = freeze(read_study(file, "quick"))
    assert 'profile = "quick"' in frozen
    assert "[profiles" not in frozen
    assert thaw(frozen) == read_study(file, "quick")
    again = tmp_path / "study.toml"
    again.write_text(frozen)
    assert read_study(again) == read_study(file, "quick")


ARMS = "[arms.a]\n[arms.b]\n"
WRONG = {
    "unknown profile names the nearest": (ARMS + "[profiles.quick]\n[profiles.full]\n", "ful", "did you mean 'full'?"),
    "unknown profile like none": (ARMS + "[profiles.quick]\n[profiles.full]\n", "zzz", "it has quick, full"),
    "profile of a study without": (ARMS, "quick", "has no profiles; leave --profile out"),
    "profiles that are no table": ("profiles = 3\n" + ARMS, None, "profiles must be tables"),
    "a profile that is no table": ("[profiles]\nquick = 3\n" + ARMS, None, "[profiles] quick is not a table"),
    "a misspelt section of all profiles": (ARMS + "[profile.quick]\n", None, "did you mean 'profiles'?"),
    "a misspelt section of a profile": (
        ARMS + "[profiles.quick.verdikt]\nblocks = 8\n",
        None,
        "wrong.toml, profile quick: unknown section or key 'verdikt'; did you mean 'verdict'?",
    ),
    "a misspelt key of a profile": (ARMS + "[profiles.quick.load]\nclient = 8\n", None, "in [load]; did you mean"),
    "a key where a section belongs": (ARMS + "[profiles.quick]\nclients = 8\n", None, "unknown section or key"),
    "a profile chosen in the file": (
        "[study]\nprofile = 'full'\n" + ARMS + "[profiles.full]\n",
        None,
        "choose a profile by --profile full",
    ),
    "a profile with one arm": (ARMS + "[profiles.quick.arms.only]\n", None, "at least two arms"),
    "a study that is no table": ("study = 3\n" + ARMS + "[profiles.quick]\n", None, "[study]"),
    "a study of a profile that is no table": (ARMS + "[profiles.quick]\nstudy = 3\n", None, "[study]"),
}


@pytest.mark.parametrize(("text", "profile", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_profile_is_refused_in_one_sentence(tmp_path, text, profile, expected):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(StudyError) as refused:
        read_study(file, profile)
    message = str(refused.value)
    assert "\n" not in message
    assert "wrong.toml" in message
    assert expected in message


def test_a_study_without_profiles_has_none():
    assert profile_names({"load": {}}, "test") == []
    assert with_profile({"load": {"clients": 8}}, None, "test") == {"load": {"clients": 8}}
