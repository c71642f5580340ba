"""Packs as a study has them: load points, defaults, variables; and what is refused at planning, a sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.loads.command_lines import engine_options
from pgtrial.loads.data.kinds import data_of
from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.packs import Pack
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.store.study_file import build_study
from pgtrial.store.workloads import bundled_packs, described_packs
from tests.packs import MANIFEST, QUALITY, write_pack

ARMS = {"a": {}, "b": {"settings": {"jit": "off"}}}


def spec_of(workload: str | list[str], folder: Path = Path(), **load: object) -> StudySpec:
    return build_study({"load": {"workload": workload, **load}, "arms": ARMS}, "test", folder)


def test_a_pack_is_a_load_point_at_each_scale_with_its_scripts_and_variables(tmp_path):
    write_pack(tmp_path / "counters")
    spec = spec_of("./counters", tmp_path, scale=[1, 3], clients=2)
    points = load_points(spec)
    assert [point.label for point in points] == ["counters, scale 1, 2 clients", "counters, scale 3, 2 clients"]
    assert points[0].pack is not None
    assert points[0].pack.scripts == {"raise.sql": 1}
    assert points[0].pack.variables == {"step": "1"}
    options = engine_options(spec.load.timed(1.0, 2.0), points[1], 7, Path("/study/scripts/counters"))
    assert " ".join(options[:7]) == "-n -f /study/scripts/counters/raise.sql@1 -s 3 -D step=1"


def test_mixes_of_a_pack_are_load_points_of_their_own_on_the_same_data():
    spec = spec_of(["pack:kv/A", "pack:kv/E"], scale=1)
    first, second = load_points(spec)
    assert (first.workload, second.workload) == ("kv/A", "kv/E")
    assert (first.slug, second.slug) == ("kv-A-s1-c8", "kv-E-s1-c8")
    assert data_of(spec, first) == data_of(spec, second)
    assert load_points(spec_of("pack:kv"))[0].workload == "kv/A", "the first mix is the default"


def test_the_defaults_of_a_pack_hold_where_the_study_says_nothing_else(tmp_path):
    defaults = '\n[defaults]\nscale = 4\nclients = 3\nprotocol = "simple"\n'
    write_pack(tmp_path / "counters", pack_toml=MANIFEST + defaults)
    alone = spec_of("./counters", tmp_path, clients=5).load
    assert (alone.scale, alone.clients, alone.protocol) == ([4], [5], "simple")
    beside = spec_of(["./counters", "select-only"], tmp_path).load
    assert (beside.scale, beside.clients, beside.protocol) == ([10], [8], "prepared")


def test_the_frozen_study_is_the_same_study(tmp_path):
    write_pack(tmp_path / "counters")
    spec = spec_of(["./counters", "pack:kv/B"], tmp_path, pack={"variables": {"step": 2, "theta": 1.2}})
    again = thaw(freeze(spec)).with_scripts(spec.scripts)
    assert again == spec
    assert load_points(again) == load_points(spec)
    assert [point.pack and point.pack.variables for point in load_points(spec)] == [{"step": "2"}, {"theta": "1.2"}]


def test_data_depends_on_the_files_and_variables_that_shape_it_and_on_no_others(tmp_path):
    def data(workload: str, **load: object) -> object:
        spec = spec_of(workload, tmp_path, scale=1, **load)
        return data_of(spec, load_points(spec)[0]).digest

    write_pack(tmp_path / "one" / "counters")
    write_pack(tmp_path / "two" / "counters", check_sql="SELECT 1 WHERE false;\n")
    write_pack(tmp_path / "three" / "counters", data_sql="INSERT INTO counters VALUES (1, :step);\n")
    assert data("./one/counters") == data("./two/counters") == data("./one/counters", pack={"variables": {"step": 5}})
    assert data("./one/counters") != data("./three/counters")
    assert data("./three/counters") != data("./three/counters", pack={"variables": {"step": 5}})


@pytest.mark.parametrize(("share_server", "seconds"), [(False, 3.0), (True, 1.5)])
def test_the_time_of_a_restore_follows_from_the_size_of_a_pack(tmp_path, share_server, seconds):
    write_pack(tmp_path / "small")
    write_pack(tmp_path / "large", pack_toml=MANIFEST.replace('"10 counters"', '"10 counters"\nmb_per_scale = 1500'))

    def estimate(workload: str) -> float:
        spec = spec_of(workload, tmp_path, scale=1, warmup=1, duration=5, share_server=share_server)
        return make_plan(spec, 1, "now").trial_estimate_s

    assert estimate("./large") - estimate("./small") == pytest.approx(seconds)


@pytest.mark.parametrize("name", bundled_packs())
def test_a_bundled_pack_says_what_it_is(name):
    pack: Pack = described_packs()[name]
    assert pack.description
    assert pack.mb_per_scale > 0
    assert load_points(spec_of(f"pack:{name}"))


WRONG_MANIFESTS = {
    "no TOML": ("description =", r"pack\.toml is not valid TOML"),
    "unknown key": (MANIFEST.replace("description", "descripton"), "unknown key 'descripton'; did you mean 'descr"),
    "unknown default": (
        MANIFEST + "\n[defaults]\nclient = 3\n",
        r"unknown key 'client' in \[defaults\]; did you mean 'clients'",
    ),
    "no description": (MANIFEST.replace("description", "#"), "description must be set"),
    "no script": (MANIFEST.replace('"raise.sql" = 1', ""), "scripts: it has no script"),
    "no weight": (MANIFEST.replace('"raise.sql" = 1', '"raise.sql" = 0'), "scripts: it has no script"),
    "empty mix": (MANIFEST.replace("[scripts]", "[mixes.A]") + "\n[mixes.B]\n", r"mixes\.B: it has no script"),
    "both": (MANIFEST + '\n[mixes.A]\n"raise.sql" = 1\n', "scripts and mixes exclude each other"),
    "script that is absent": (MANIFEST.replace("raise.sql", "lower.sql"), "names lower.sql, which is not in"),
    "check as a script": (MANIFEST.replace("raise.sql", "check.sql"), "names check.sql as a script of the load"),
    "script elsewhere": (MANIFEST.replace("raise.sql", "../raise.sql"), "lies in the pack's folder"),
    "pgbench's variable": (MANIFEST.replace("step", "client_id"), "client_id is set by pgtrial"),
    "no variable's name": (MANIFEST.replace("step =", '"a b" ='), "'a b' is not the name of a variable"),
    "quality without measure.sql": (QUALITY, r"it has \[quality\] in pack\.toml and no measure\.sql"),
    "hold without hold.sql": ('hold = "a.b"\n' + MANIFEST, r"it has hold in pack\.toml and no hold\.sql"),
}


@pytest.mark.parametrize(("manifest", "expected"), WRONG_MANIFESTS.values(), ids=WRONG_MANIFESTS.keys())
def test_a_manifest_that_cannot_be_used_is_refused(tmp_path, manifest, expected):
    write_pack(tmp_path / "counters", pack_toml=manifest)
    with pytest.raises(StudyError, match=r"^the pack counters: .*" + expected):
        spec_of("./counters", tmp_path)


WRONG_FILES = {
    "no schema": ({"schema_sql": None}, r"it has no schema\.sql"),
    "script that nothing names": ({"lower_sql": "SELECT 1;"}, r"lower\.sql is not a script of any mix"),
    "measure without quality": ({"measure_sql": "SELECT 1;"}, r"it has measure\.sql and no \[quality\]"),
}


@pytest.mark.parametrize(("changed", "expected"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_files_that_do_not_fit_the_manifest_are_refused(tmp_path, changed, expected):
    write_pack(tmp_path / "counters", **changed)
    with pytest.raises(StudyError, match=r"^the pack counters: .*" + expected):
        spec_of("./counters", tmp_path)


WRONG_WORKLOADS = {
    "unknown": ("pack:queu", "no pack called 'queu' comes with pgtrial; did you mean 'queue'"),
    "unknown mix": ("pack:kv/G", "the pack kv has no mix 'G'; it has A, B"),
    "mix of a pack without": ("pack:queue/A", "the pack queue has no mix 'A'; it has none"),
    "twice": (["pack:kv", "pack:kv/A"], "the pack kv/A is listed more than once"),
    "two of one name": (["pack:queue", "./queue"], "another workload has the same name as the pack queue"),
    "script of its name": (["pack:queue", "./own/queue"], "own/queue has the same name as a pack of the study"),
    "name": ("./my pack", "'my pack' cannot be the name of a pack"),
    "folder without": ("./own", r"own is a folder without a pack\.toml"),
    "no text": ("./latin", r"the file data\.sql of the pack latin is not a text in UTF-8"),
}


@pytest.mark.parametrize(("workload", "expected"), WRONG_WORKLOADS.values(), ids=WRONG_WORKLOADS.keys())
def test_a_workload_that_is_no_pack_to_be_had_is_refused(tmp_path, workload, expected):
    for name in ("queue", "my pack", "latin"):
        write_pack(tmp_path / name)
    (tmp_path / "latin" / "data.sql").write_bytes("-- é".encode("latin-1"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "queue").write_text("SELECT 1;\n")
    with pytest.raises(StudyError, match=expected):
        spec_of(workload, tmp_path)


WRONG_SECTIONS = {
    "unknown variable": ("pack:queue", {"variables": {"batches": 3}}, "no variable 'batches'; did you mean 'batch'"),
    "no quality": ("pack:queue", {"at_least": 0.9}, "are for packs that measure a quality"),
    "no pack": (
        "select-only",
        {"variables": {"batch": 3}},
        r"\[load\] pack is only for packs, but no workload is a pack",
    ),
    "unknown key": ("pack:queue", {"variable": {}}, r"unknown key 'variable' in \[load\.pack\]; did you mean"),
}


@pytest.mark.parametrize(("workload", "section", "expected"), WRONG_SECTIONS.values(), ids=WRONG_SECTIONS.keys())
def test_keys_for_packs_that_concern_none_are_refused(workload, section, expected):
    with pytest.raises(StudyError, match="^test: .*" + expected):
        spec_of(workload, pack=section)
