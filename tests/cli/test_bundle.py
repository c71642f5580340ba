"""`pgtrial bundle`, `verify` and the commands that read a bundle, from the command line."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pgtrial.store.bundle import open_study
from tests.conftest import EXAMPLES

NAME = "huge-pages-1gb"
BUNDLE = EXAMPLES / f"{NAME}.tar.xz"


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200"}
    return lambda *arguments, cwd: commands.run([*map(str, arguments)], Path(cwd), environment)


@pytest.fixture
def study(tmp_path, example):
    """Returns a study directory `s`, unpacked from a bundle and without the bundle's own file."""
    shutil.copytree(example(NAME).path, tmp_path / "s")
    (tmp_path / "s" / "bundle.json").unlink()
    return tmp_path / "s"


def changed(path, key, value):
    content = json.loads(path.read_text())
    content[key] = value
    path.write_text(json.dumps(content))


def refusal(done):
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("pgtrial: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_study_is_bundled_and_verified(pgtrial, study, tmp_path, example):
    trial = next((study / "trials").iterdir())
    (trial / "engine.jsonl").write_text("{}\n")
    done = pgtrial("bundle", "s/", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "s.tar.xz\n"
    assert "left out: 1 files of 0.00 MB (engine.jsonl), which --all keeps" in done.stderr
    done = pgtrial("verify", "s.tar.xz", cwd=tmp_path)
    parts = len([path for path in example(NAME).path.rglob("*") if path.is_file() and path.name != "bundle.json"])
    assert done.stdout == (
        f"s.tar.xz: {parts} parts are as they were bundled, and the verdict follows from the 12 trials\n"
    )
    assert done.returncode == 0
    assert pgtrial("bundle", "s", "--all", "-o", "all.tar.xz", cwd=tmp_path).returncode == 0
    assert f"{parts + 1} parts" in pgtrial("verify", "all.tar.xz", cwd=tmp_path).stdout


def test_a_bundle_has_marks_in_place_of_values_that_may_be_secrets_and_who_runs_it_is_asked_for_them(
    pgtrial, study, tmp_path
):
    done = pgtrial("bundle", "s", "-o", "plain.tar.xz", cwd=tmp_path)
    assert "secret" not in done.stderr
    plan = json.loads((study / "plan.json").read_text())
    plan.pop("sha256", None)  # the digests of a study.toml that this test changes
    (study / "plan.json").write_text(json.dumps(plan))
    text = (study / "study.toml").read_text()
    named = text.replace("environment = {}", 'environment = { API_TOKEN = "t0p-0f-all" }', 1)
    (study / "study.toml").write_text(named)
    done = pgtrial("bundle", "s", "-o", "named.tar.xz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "may be secrets: server.environment.API_TOKEN (PGTRIAL_SECRET_1); whoever runs" in done.stderr
    with open_study(tmp_path / "named.tar.xz") as opened:
        assert opened.spec.server.environment == {"API_TOKEN": "(cut: PGTRIAL_SECRET_1)"}
        assert not any(b"t0p-0f-all" in path.read_bytes() for path in opened.path.rglob("*") if path.is_file())
    done = pgtrial("verify", "named.tar.xz", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the verdict follows from the 12 trials" in done.stdout
    shutil.unpack_archive(tmp_path / "named.tar.xz", tmp_path / "got")
    shutil.rmtree(min((tmp_path / "got" / "study" / "trials").iterdir()))
    allowed = ["--trust", "--allow", "commands,servers,machine,sources,files"]
    asked = pgtrial("run", "got/study", *allowed, cwd=tmp_path)
    assert asked.returncode == 3
    assert "set the environment variables PGTRIAL_SECRET_1 (server.environment.API_TOKEN) to the values" in asked.stderr


def test_a_bundle_is_read_as_its_directory_is(pgtrial, study, tmp_path):
    for command in (["verdict"], ["verdict", "--json"], ["facts"], ["facts", "--json"]):
        done, same = (pgtrial(*command, path, cwd=tmp_path) for path in (BUNDLE, study))
        # what goes on with a study is its directory
        message = same.stdout.replace(f"run {study} ", "run DIRECTORY ")
        assert (done.returncode, done.stdout.split(), done.stderr) == (same.returncode, message.split(), "")
        assert done.stdout
    assert json.loads(done.stdout)["facts"].keys() == {"4kB", "2MB", "1GB"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"], "reading writes nothing"


def test_the_page_of_a_bundle_is_written_beside_it_or_where_it_is_asked_for(pgtrial, study, tmp_path):
    shutil.copy(BUNDLE, tmp_path / "b.tar.xz")
    done = pgtrial("report", "b.tar.xz", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "b.html\n")
    assert pgtrial("report", "b.tar.xz", "-o", "b.md", cwd=tmp_path).stdout == "b.md\n"
    assert pgtrial("report", "s", cwd=tmp_path).stdout == "s/report.html\n"
    assert (tmp_path / "b.html").read_text() == (study / "report.html").read_text()
    assert (tmp_path / "b.md").read_text() == (study / "report.md").read_text()


def test_several_verdicts_are_printed_with_the_worst_status(pgtrial, study, example, tmp_path):
    other = example("postgres-versions").path
    one, both = pgtrial("verdict", "s", cwd=tmp_path), pgtrial("verdict", "s", other, cwd=tmp_path)
    assert both.stdout.startswith(f"s:\n{one.stdout}")
    assert f"\n{other}:\n" in both.stdout
    statuses = {pgtrial("verdict", path, cwd=tmp_path).returncode for path in ("s", other)}
    assert both.returncode == (1 if 1 in statuses else max(statuses))
    lines = pgtrial("verdict", "s", other, "--json", cwd=tmp_path).stdout.splitlines()
    assert [json.loads(line)["study"] for line in lines] == ["s", str(other)]


def test_a_report_is_html_or_markdown_or_short(pgtrial, study, tmp_path):
    reason = refusal(pgtrial("report", "s", "-o", "out.pdf", cwd=tmp_path))
    assert (
        "a report follows from its file name, and out.pdf is neither HTML nor Markdown; end the name in .html or .md"
        in reason
    )
    for mail in ("m.txt", "m.md"):
        told = refusal(pgtrial("report", "s", "--mail", "-o", mail, cwd=tmp_path))
        assert f"leave out -o, and write > {mail} after the command" in told
    short = pgtrial("report", "s", "--short", cwd=tmp_path).stdout
    whole = (study / "report.md").read_text()
    assert short.splitlines()[0] == whole.splitlines()[0]
    assert len(short.splitlines()) < len(whole.splitlines()) / 3
    assert "Remarks of the audit" not in short
    assert "## Differences" in short
    assert "## All trials" not in short
    assert pgtrial("report", "s", "--short", "-o", "s.md", cwd=tmp_path).stdout == "s.md\n"
    assert (tmp_path / "s.md").read_text() == short
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "s.md"]


def test_no_file_is_overwritten_by_another(pgtrial, study, tmp_path):
    (tmp_path / "mine").write_text("precious")
    for command in (["bundle", "s"], ["report", BUNDLE]):
        reason = refusal(pgtrial(*command, "-o", "mine", cwd=tmp_path))
        assert "mine exists with different content; remove it, or name another file with -o" in reason
    assert (tmp_path / "mine").read_text() == "precious"
    reason = refusal(pgtrial("bundle", "s", "-o", "absent/b", cwd=tmp_path))
    assert "cannot write absent/b: No such file or directory; name another file with -o" in reason
    assert pgtrial("bundle", "s", cwd=tmp_path).returncode == 0
    assert pgtrial("bundle", "s", cwd=tmp_path).returncode == 0, "the same bytes are no other file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "s", "s.tar.xz"]


def test_verify_says_what_is_wrong_in_one_sentence(pgtrial, study, tmp_path):
    def reason(name):
        return refusal(pgtrial("verify", name, cwd=tmp_path))

    whole = BUNDLE.read_bytes()
    (tmp_path / "cut").write_bytes(whole[:20_000])
    assert "cut is truncated, at part" in reason("cut")
    (tmp_path / "bent").write_bytes(whole[:20_000] + b"!!!" + whole[20_003:])
    assert "bent is damaged, at part" in reason("bent")
    (tmp_path / "text").write_text("no bundle")
    assert "text is not a bundle; `pgtrial bundle DIRECTORY` makes a bundle of a study" in reason("text")
    assert "absent does not exist; name the directory of a study, or its bundle" in reason("absent")
    refusal(pgtrial("verdict", "cut", cwd=tmp_path))


def test_a_verdict_that_does_not_follow_is_said_with_the_difference(pgtrial, study, tmp_path):
    assert pgtrial("verify", "s", cwd=tmp_path).stdout == "s: the verdict follows from the 12 trials\n"
    changed(study / "verdict.json", "trials_stored", 13)
    message = "trials_stored is 13 in verdict.json and 12 by the trials"
    assert f"the verdict of s does not follow from its trials: {message}\n" in refusal(
        pgtrial("verify", "s", cwd=tmp_path)
    )
    assert f"{message}; `pgtrial report s` computes the verdict again" in refusal(pgtrial("bundle", "s", cwd=tmp_path))
    changed(study / "verdict.json", "invented", {"a": [1]})
    assert f"{message} (and 1 more)" in refusal(pgtrial("verify", "s", cwd=tmp_path))
    (study / "verdict.json").write_text("[" * 100_000)
    assert "verdict.json is damaged; `pgtrial report" in refusal(pgtrial("verify", "s", cwd=tmp_path))
    (study / "verdict.json").unlink()
    assert "s has no verdict.json; `pgtrial report" in refusal(pgtrial("bundle", "s", cwd=tmp_path))
    assert pgtrial("report", "s", cwd=tmp_path).returncode == 0
    assert pgtrial("bundle", "s", cwd=tmp_path).returncode == 0


def test_a_study_with_a_trial_less_than_its_verdict_counts_does_not_verify(pgtrial, study, tmp_path):
    shutil.rmtree(min((study / "trials").iterdir()))
    assert "does not follow from its trials: " in refusal(pgtrial("verify", "s", cwd=tmp_path))


def test_links_to_folders_are_not_bundled_as_nothing(pgtrial, study, tmp_path):
    (study / "trials").rename(tmp_path / "elsewhere")
    (study / "trials").symlink_to(tmp_path / "elsewhere")
    assert "or holds links to folders" in refusal(pgtrial("bundle", "s", cwd=tmp_path))


def test_links_to_files_are_not_followed(pgtrial, study, tmp_path):
    """A stranger's archive of a folder may contain a link to a file that only its reader may read."""
    (tmp_path / "secret").write_text("of the reader")
    (study / "report.html").unlink(missing_ok=True)
    (study / "report.html").symlink_to(tmp_path / "secret")
    refused = refusal(pgtrial("bundle", "s", cwd=tmp_path))
    assert "s/report.html is a link, which a bundle does not follow; remove it" in refused
    (study / "report.html").rename(study / "notes")
    (tmp_path / "secret").unlink()
    assert pgtrial("bundle", "s", cwd=tmp_path).returncode == 0, "what is left out may be a link to nothing"


def test_a_study_goes_on_in_its_folder_only(pgtrial, tmp_path):
    assert "is a bundle; unpack it with `tar -xf`" in refusal(pgtrial("run", BUNDLE, cwd=tmp_path))
    assert "the facts of this study are stored" in refusal(pgtrial("facts", BUNDLE, "--fleet", "auto", cwd=tmp_path))
