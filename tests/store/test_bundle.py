"""A bundle gives back the study that went in, and anything else is one sentence: nothing of it is written anywhere."""

import base64
import io
import json
import lzma
import os
import shutil
import struct
import tarfile
import zlib
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StoreError
from pgtrial.model.records.facts import Audit, Facts
from pgtrial.store import bundle
from pgtrial.store.bundle import check_parts, is_bundle, manifest_of, open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import TIMELINE_SCHEMA, refuse_hostile
from tests.store.samples import completed_trial, encoded

RAW = ("engine.jsonl", "server.log")
THREE, BELOW_ZERO = 0x06, b"\x7f"
"""Two numbers in the zigzag encoding of Parquet's headers."""


def xz(content):
    return lzma.compress(content, preset=0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Returns a study directory with everything that one may hold."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "orders.sql").write_text("SELECT 1;\n")
    asked = {"arms": {"old": {}, "new one": {"settings": {"jit": "off"}}}, "load": {"workload": "./orders.sql"}}
    spec = build_study({**asked, "verdict": {"blocks": 8}}, "test", folder)
    study = StudyDirectory.create(folder / "s", spec, make_plan(spec, 5, "2026-11-20T14:12:00+00:00"))
    for planned in study.plan.trials[:3]:
        trial = study.begin_trial(planned)
        rows = [["measure", second, 100, 0, 1.0, 1.0, 1.0, 1.0, 1.0] for second in range(3)]
        pl.DataFrame(rows, schema=TIMELINE_SCHEMA, orient="row").write_parquet(trial / "timeline.parquet")
        (trial / "latency.hdr").write_text(encoded(100, 200, 300) + "\n")
        for name in RAW:
            (trial / name).write_text(f"{name} of {planned.index}\n")
        study.write_trials([completed_trial(study, planned)])
    for arm in study.plan.arms:
        study.write_facts(Facts(arm=arm, collected="2026-11-20T14:12:00Z", facts={"cpu": {"cores": 2}}))
    study.write_audit(Audit(findings=[]))
    (study.path / "canaries").mkdir()
    (study.path / "canaries" / "0000.json").write_text("{}")
    shutil.copytree(study.path / "trials", study.path / "voided" / "b00-1")
    (study.path / "voided" / "b00-1" / "void.json").write_text("{}")
    for name in ("verdict.json", "published.json", "report.md", "report.html"):
        study.write_file(name, f'"{name}"')
    (study.path / ".lock").write_text("")
    study.begin_trial(study.plan.trials[3])
    return study


@pytest.fixture(scope="module")
def whole(study):
    """Returns the study's bundle as bytes."""
    return written(study)


@pytest.fixture
def read(tmp_path):
    """Opens bytes as a bundle, with a private folder for what is unpacked; gives the names that were unpacked."""

    def names(content):
        path = tmp_path / "b.tar.xz"
        path.write_bytes(content)
        with open_study(path) as opened:
            return sorted(bundle.files_of(opened.path))

    return names


@pytest.fixture(autouse=True)
def unpacked(tmp_path_factory, monkeypatch):
    """Makes bundles unpack into a state directory of the test, and asserts afterwards that nothing of them is left in
    it or beside it.
    """
    around = tmp_path_factory.mktemp("around")
    (around / "in").mkdir()
    monkeypatch.setenv("PGTRIAL_STATE", str(around / "in"))
    yield
    assert {path.name for path in around.rglob("*")} <= {"in", "temporary", "machine.key"}


def written(study, *, everything=False):
    path = study.path.with_name("written.tar.xz")
    write_bundle(study, path, everything=everything)
    return path.read_bytes()


def test_a_bundle_opens_as_the_study_that_it_was_made_of(study, tmp_path):
    write_bundle(study, tmp_path / "b", everything=False)
    assert is_bundle(tmp_path / "b")
    with open_study(tmp_path / "b") as again:
        assert (again.spec, again.plan) == (study.spec, study.plan)
        assert again.trials() == study.trials()
        assert len(again.trials()) == 3
        for trial in again.trials():
            assert again.timeline(trial).equals(study.timeline(trial))
            assert again.latencies(trial).total == study.latencies(trial).total == 3
        assert again.facts() == study.facts()
        assert again.audit() == study.audit()
        assert again.voided_blocks() == study.voided_blocks() == [0]
        assert again.script(again.plan.load_points[0]).read_text() == "SELECT 1;\n"
        expected = [name for name in bundle.files_of(study.path) if not name.endswith(RAW)]
        assert sorted(bundle.files_of(again.path)) == sorted(expected)
        for name in expected:
            assert (again.path / name).read_bytes() == (study.path / name).read_bytes()


def test_a_directory_opens_as_itself(study):
    with open_study(study.path) as opened:
        assert opened.path == study.path
        assert manifest_of(opened) is None


def test_the_same_study_gives_the_same_bytes(study, whole, tmp_path):
    copy = tmp_path / "another name"
    shutil.copytree(study.path, copy, copy_function=shutil.copyfile)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    assert written(StudyDirectory.open(copy)) == whole


def test_all_keeps_the_raw_record_which_is_not_unpacked_for_reading(study, tmp_path):
    (tmp_path / "b").write_bytes(written(study, everything=True))
    with open_study(tmp_path / "b") as opened:
        kept = [part.name for part in manifest_of(opened).parts]
        assert not [name for name in bundle.files_of(opened.path) if name.endswith(RAW)]
    assert sorted(kept) == sorted(bundle.files_of(study.path))
    assert len([name for name in kept if name.endswith(RAW)]) == 12


def test_any_tar_unpacks_it_and_the_folder_can_be_checked_and_bundled_again(study, whole, tmp_path):
    with tarfile.open(fileobj=io.BytesIO(whole), mode="r:xz") as tar:
        members = tar.getmembers()
        assert all(member.isreg() and member.name.startswith("study/") for member in members)
        assert {(member.mtime, member.uid, member.gid, member.mode) for member in members} == {(0, 0, 0, 0o644)}
        tar.extractall(tmp_path, filter="data")
    again = StudyDirectory.open(tmp_path / "study")
    check_parts(again.path, manifest_of(again))
    assert written(again) == whole
    (again.path / "facts" / "old.json").write_text("{}")
    with pytest.raises(StoreError, match=r"facts/old\.json has changed since it was unpacked"):
        check_parts(again.path, manifest_of(again))
    (again.path / "facts" / "old.json").unlink()
    with pytest.raises(StoreError, match=r"facts/old\.json is missing"):
        check_parts(again.path, manifest_of(again))


# ---- damaged ones


def test_a_bundle_cut_at_any_byte_is_cut_short(whole, read):
    for length in (*range(0, 64), *range(64, len(whole), 41), *range(len(whole) - 64, len(whole))):
        with pytest.raises(StoreError, match=r"b\.tar\.xz is truncated, at .*; copy or download it again"):
            read(whole[:length])


def test_a_bundle_with_any_block_missing_at_its_end_says_which_part_is_missing(whole, read):
    tar = lzma.decompress(whole)
    for length in range(len(tar) - 512, 0, -512):
        with pytest.raises(StoreError, match=r"b\.tar\.xz was changed after it was bundled: it ends before"):
            read(xz(tar[:length]))


@given(data=st.data())
def test_any_altered_byte_is_found(whole, reader, data):
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(1, 255))
    with pytest.raises(StoreError):
        reader(whole[:place] + bytes([whole[place] ^ other]) + whole[place + 1 :])


@given(data=st.data())
def test_any_altered_byte_is_found_below_the_compression(whole, reader, data):
    tar = lzma.decompress(whole)
    parts = 512 * (1 + -(-tarfile.TarInfo.frombuf(tar[:512], "utf-8", "strict").size // 512))
    place = data.draw(st.integers(parts, len(tar) - 1))
    other = data.draw(st.integers(1, 255))
    with pytest.raises(StoreError, match=r"was changed after it was bundled: .*(part|its end)|there is more data"):
        reader(xz(tar[:place] + bytes([tar[place] ^ other]) + tar[place + 1 :]))


@given(content=st.binary(max_size=2000), compressed=st.booleans())
@example(content=b"", compressed=False)
@example(content=bytes(1024), compressed=True)
def test_other_files_are_no_bundles(reader, content, compressed):
    with pytest.raises(StoreError, match=r"not a bundle|is truncated|it ends before its manifest"):
        reader(xz(content) if compressed else content)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Returns a function that reads a bundle and returns its file names, like `read`, for tests that run it
    very often.
    """
    path = tmp_path_factory.mktemp("reader") / "b.tar.xz"

    def names(content):
        path.write_bytes(content)
        with open_study(path) as opened:
            return sorted(bundle.files_of(opened.path))

    return names


# ---- hostile ones: digests and manifest fit


def forged(*parts, members=None, manifest=None):
    """Returns a bundle with these parts (name, content), valid or not. `members` replaces its tar entries (header,
    content).
    """
    listed = [{"name": name, "size": len(data), "sha256": sha256(data).hexdigest()} for name, data in parts]
    text = json.dumps(manifest or {"format": 1, "parts": listed}).encode()
    members = [member(name, data) for name, data in parts] if members is None else members
    return xz(b"".join([member("bundle.json", text), *members, bytes(1024)]))


def member(name, data, **header):
    info = tarfile.TarInfo(f"study/{name}")
    info.size = len(data)
    for key, value in header.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def test_a_forged_bundle_without_a_trick_is_read(read):
    with pytest.raises(StoreError, match=r"b\.tar\.xz is not a study directory: it has no study\.toml"):
        read(forged(("plan.json", b"{}")))


@pytest.mark.parametrize(
    "name",
    [
        "../study.toml", "/study.toml", "facts/../../study.toml", "trials/0001/../../../trial.json", "..", ".", "",
        "facts/", "./plan.json", "facts//x.json", "C:study.toml", "C:/study.toml", "facts\\..\\..\\x.json",
        "scripts/a\0b", "scripts/a\nb", "scripts/\ud800", f"scripts/{'x' * 200}", "//host/share/x",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_rejected(read, name):
    part = {"name": name, "size": 0, "sha256": sha256(b"").hexdigest()}
    with pytest.raises(StoreError, match=r"its manifest is invalid .*; copy or download it again$"):
        read(forged(manifest={"format": 1, "parts": [part]}))


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE],
)
def test_what_is_no_plain_file_is_rejected(read, kind):
    header = member("plan.json", b"", type=kind, linkname="/etc/passwd" if kind in (b"1", b"2") else "")
    with pytest.raises(StoreError, match=r"part plan\.json is altered"):
        read(forged(("plan.json", b""), members=[header]))


def test_the_files_are_those_of_the_manifest_in_its_order(read):
    a, b = ("plan.json", b"{}"), ("study.toml", b"")
    for parts, members, message in (
        ((a, b), [member(*b), member(*a)], r"part plan\.json is missing"),
        ((a, b), [member(*a)], r"part study\.toml is missing"),
        ((a,), [member(*a), member(*b)], "there is more data after its last part"),
        ((a,), [member("plan.json", b"{} ")], r"part plan\.json is altered: its header"),
        ((a,), [member("plan.json", b"{}", mtime=1)], r"part plan\.json is altered: its header"),
        ((a,), [member("plan.json", b"[]")], r"part plan\.json is altered: its SHA-256"),
        ((a, a), None, "its manifest lists a file twice"),
        ((("scripts/a", b""), ("scripts/a/b", b"")), None, r"cannot be read or unpacked|is not a study directory"),
    ):
        with pytest.raises(StoreError, match=message):
            read(forged(*parts, members=members))


def test_what_follows_the_end_is_noticed(whole, read):
    for more in (b"\0", whole, xz(bytes(1 << 20))):
        with pytest.raises(StoreError, match="there is more data after its last part"):
            read(whole + more)
    with pytest.raises(StoreError, match="there is more data after its last part"):
        read(xz(lzma.decompress(whole) + bytes(1 << 20)))


def test_sizes_are_bounded(read):
    def claim(size):
        return {"name": "study.toml", "size": size, "sha256": sha256(b"").hexdigest()}

    scripts = [{**claim(1 << 28), "name": f"scripts/{number}"} for number in range(17)]
    with pytest.raises(StoreError, match="has more than 4 GB, which pgtrial does not unpack; unpack it with tar -xf"):
        read(forged(manifest={"format": 1, "parts": scripts}))
    for name in ("report.html", "plan.json", "trials/000/timeline.parquet"):
        with pytest.raises(StoreError, match=f"the file {name} in it has 300 MB, but pgtrial reads at most 256 MB"):
            read(forged(manifest={"format": 1, "parts": [{**claim(300 << 20), "name": name}]}))
    raw = [{**claim(6 << 30), "name": f"trials/{number}/engine.jsonl"} for number in range(3)]
    with pytest.raises(StoreError, match="has more than 16 GB in total"):
        read(forged(manifest={"format": 1, "parts": raw}))
    many = [{"name": f"x/{number}", "size": 0, "sha256": sha256(b"").hexdigest()} for number in range((1 << 17) + 1)]
    with pytest.raises(StoreError, match="has more than 131,072 files, which pgtrial does not read"):
        read(forged(manifest={"format": 1, "parts": many}))
    for size in (1 << 40, -1):
        with pytest.raises(StoreError, match="its manifest is invalid"):
            read(forged(manifest={"format": 1, "parts": [claim(size)]}))
    for size in (1 << 27, 1 << 32):
        with pytest.raises(StoreError, match="is not a bundle"):
            read(xz(member("bundle.json", b"", size=size)))
    dictionary = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    with pytest.raises(StoreError, match="is damaged, at its manifest"):
        read(lzma.compress(bytes(1 << 20), filters=dictionary))


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format": 0, "parts": []}', b'{"format": 1}']
)
def test_a_manifest_of_anything_else_is_damaged(read, text):
    with pytest.raises(StoreError, match="its manifest is invalid"):
        read(xz(member("bundle.json", text)))


def test_a_newer_format_asks_for_an_upgrade(read):
    with pytest.raises(StoreError, match=r"was written by a newer pgtrial \(format 2 of bundles\); upgrade"):
        read(forged(manifest={"format": 2, "chapters": {}}))


def test_a_damaged_study_in_a_whole_bundle_is_named_as_it_is_in_the_bundle(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study.path, copy)
    (copy / "plan.json").write_text("{")
    path = tmp_path / "b.tar.xz"
    write_bundle(StudyDirectory(copy, study.spec, study.plan), path, everything=False)
    with pytest.raises(StoreError, match=rf"^{path}/plan\.json is damaged or missing"), open_study(path):
        pass


def test_a_file_that_cannot_be_a_part_is_named(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study.path, copy)
    (copy / "notes\nof mine").write_text("")
    written(StudyDirectory.open(copy))
    with pytest.raises(StoreError, match=r"of mine' cannot be bundled: its name is too long or not portable"):
        written(StudyDirectory.open(copy), everything=True)


def test_a_table_that_ends_its_reader_is_named(study, tmp_path):
    """Polars ends the process at some page headers with a number below zero in the place of a count of three."""
    made = tmp_path / "made"
    shutil.copytree(study.path, made)
    (table, *others) = sorted(made.rglob("*.parquet"))
    for other in others:
        other.unlink()
    whole = table.read_bytes()
    places = [place for place, byte in enumerate(whole) if byte == THREE]
    tables = []
    for place in places:
        tables.append(tmp_path / f"{place}.parquet")
        tables[-1].write_bytes(whole[:place] + BELOW_ZERO + whole[place + 1 :])
    with pytest.raises(
        StoreError, match=r"parquet cannot be read: it makes the process that reads it crash"
    ) as refusal:
        refuse_hostile(tables)  # else this version of polars reads them all: the check can go
    table.write_bytes(Path(str(refusal.value).split()[0]).read_bytes())
    write_bundle(StudyDirectory.open(made), tmp_path / "forged.tar.xz", everything=False)
    with (
        pytest.raises(
            StoreError,
            match=rf"forged\.tar\.xz/.*{table.name} cannot be read: it makes the process that reads it crash",
        ),
        open_study(tmp_path / "forged.tar.xz"),
    ):
        pass


def test_tables_that_are_damaged_otherwise_end_no_reader(tmp_path):
    (tmp_path / "no.parquet").write_bytes(b"PAR1 no parquet")
    refuse_hostile([tmp_path / "no.parquet", tmp_path / "absent.parquet"])
    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_parquet(tmp_path / "no.parquet")


def bundled_with(study, tmp_path, name, content):
    """Returns a bundle of the study in which one file of the first trial has another content."""
    made = tmp_path / "made"
    shutil.copytree(study.path, made)
    copy = StudyDirectory.open(made)
    (copy.trial_path(copy.trials()[0]) / name).write_bytes(content)
    path = tmp_path / "forged.tar.xz"
    write_bundle(copy, path, everything=True)
    return path


def read_first_trial(path):
    with open_study(path) as opened:
        (first, *_) = opened.trials()
        opened.timeline(first)
        opened.latencies(first)


def refusal_of(path):
    with pytest.raises(StoreError) as refusal:
        read_first_trial(path)
    return str(refusal.value)


def timeline(*seconds):
    rows = [["measure", second, 100, 0, 1.0, 1.0, 1.0, 1.0, 1.0] for second in seconds]
    table = io.BytesIO()
    pl.DataFrame(rows, schema=TIMELINE_SCHEMA, orient="row").write_parquet(table)
    return table.getvalue()


def test_a_second_far_beyond_any_trial_is_refused(study, tmp_path):
    forged = bundled_with(study, tmp_path, "timeline.parquet", timeline(0, 1, 300_000_000))
    assert "is damaged or missing (a second beyond 2,000,000)" in refusal_of(forged)


def test_more_rows_than_a_trial_can_have_are_refused_before_they_are_read(study, tmp_path):
    table = io.BytesIO()
    columns = [pl.repeat("measure", 5_000_001, eager=True).alias("phase")]
    columns += [
        pl.repeat(0, 5_000_001, dtype=kind, eager=True).alias(name) for name, kind in list(TIMELINE_SCHEMA.items())[1:]
    ]
    pl.DataFrame(columns).write_parquet(table)
    assert len(table.getvalue()) < 200_000
    refusal = refusal_of(bundled_with(study, tmp_path, "timeline.parquet", table.getvalue()))
    assert "has 5,000,001 rows, but pgtrial reads at most 5,000,000" in refusal


def test_a_histogram_is_not_inflated_beyond_the_longest_there_is(study, tmp_path):
    bomb = zlib.compress(struct.pack(">IIIIQQd", 0x1C849313, 1 << 30, 0, 3, 1, 3_600_000_000, 1.0) + bytes(1 << 26), 9)
    text = base64.b64encode(struct.pack(">II", 0x1C849314, len(bomb)) + bomb)
    assert "are longer than any histogram of the load engine" in refusal_of(
        bundled_with(study, tmp_path, "latency.hdr", text)
    )


def test_the_head_of_a_bundle_is_a_study_without_its_trials(study, tmp_path):
    path = tmp_path / "b.tar.xz"
    write_bundle(study, path, everything=True)
    with open_study(path, head=True) as head:
        assert (head.spec, head.plan) == (study.spec, study.plan)
        assert (head.path / "verdict.json").read_text() == '"verdict.json"'
        assert not (head.path / "trials").exists()
    with open_study(study.path, head=True) as same:
        assert same.trials() == study.trials()


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_the_head_of_a_bundle_that_is_cut_short_is_refused(study, tmp_path, length):
    path = tmp_path / "b.tar.xz"
    write_bundle(study, path, everything=False)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(StoreError, match="is truncated"), open_study(path, head=True):
        pass
