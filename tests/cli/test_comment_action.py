"""The Action that writes a gate's comment from the artefact of a run of a stranger's pull request."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

ACTION = Path(__file__).parents[2] / "comment"
_spec = importlib.util.spec_from_file_location("comment", ACTION / "comment.py")
comment = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(comment)

SUMMARY = "### pgtrial gate: pass\n\n| arm | tps |\n|---|---|\n| `base` | **1,000** |\n"
COMMIT = "c" * 40

FAKE_GH = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
arguments = sys.argv[1:]
text = sys.stdin.read() if "--input" in arguments else ""
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([arguments, text]) + "\\n")
answers = json.loads((folder / "answers").read_text())
words = " ".join(arguments)
if (folder / "forbidden").exists():
    sys.exit("::warning::gh: Resource not accessible by integration (HTTP 403)")
if words.endswith("/zip"):
    sys.stdout.buffer.write((folder / "artefact.zip").read_bytes())
elif "/artifacts" in words:
    print(json.dumps({{"artifacts": answers["artefacts"]}}))
elif "/pulls" in words:
    print(json.dumps(answers["pulls"]))
elif "graphql" in words:
    print("github-actions[bot]")
elif "--paginate" in words:
    print(answers["known"])
"""


class Job:
    """A job that runs the Action's step, with a `gh` that answers as this test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers = {
            "artefacts": [{"id": 5, "name": "pgtrial-gate", "expired": False, "size_in_bytes": 900}],
            "pulls": [{"number": 7, "head": {"sha": "d" * 40}}, {"number": 12, "head": {"sha": COMMIT}}],
            "known": "",
        }
        self.variables = {"PULL_REQUEST": "", "RUN": "99", "NAME": "gate", "COMMIT": COMMIT}
        fake = folder / "gh"
        fake.write_text(FAKE_GH.format(python=sys.executable, folder=str(folder)))
        fake.chmod(0o755)
        self.holds({"summary.md": SUMMARY})

    def holds(self, files: dict[str, str | bytes]) -> None:
        """Makes an artefact of these files."""
        with zipfile.ZipFile(self.folder / "artefact.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)

    def run(self) -> subprocess.CompletedProcess[str]:
        (self.folder / "answers").write_text(json.dumps(self.answers))
        (step,) = yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]
        given = {"OWNER": "stranger", "BRANCH": "fix&x=1", "GITHUB_REPOSITORY": "me/mine", "GH_TOKEN": "t0ken"}
        environment = {
            **given,
            **self.variables,
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "SCRIPT": str(ACTION / "comment.py"),
        }
        assert environment.keys() >= step["env"].keys()
        assert "${{" not in step["run"], "inputs reach a script by its environment alone"
        script = step["run"].replace("python3", sys.executable)
        return subprocess.run(
            ["bash", "-c", script], env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    @property
    def calls(self) -> list[tuple[list[str], str]]:
        return [tuple(json.loads(line)) for line in (self.folder / "calls").read_text().splitlines()]

    def refused(self) -> str:
        """Runs the step, and returns why no comment was written."""
        done = self.run()
        assert done.returncode == 3
        assert "Traceback" not in done.stderr
        assert not [call for call, _ in self.calls if {"POST", "PATCH"} & {*call}]
        (line,) = done.stdout.splitlines()
        return line.removeprefix("::error::no comment is written: ")


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def test_the_comment_goes_to_the_pull_request_of_the_run_and_has_the_summary(job):
    assert job.run().returncode == 0
    call, text = job.calls[-1]
    assert call == ["api", "--method", "POST", "repos/me/mine/issues/12/comments", "--input", "-"]
    body = json.loads(text)["body"]
    assert body.startswith(
        f"<!-- pgtrial gate: gate -->\n{SUMMARY}\nMeasured by [a run](https://github.com/me/mine/actions/runs/99)"
    )
    assert next(call[-2:] for call, _ in job.calls if "/pulls" in " ".join(call)) == ["-f", "head=stranger:fix&x=1"]


def test_a_comment_that_is_there_is_updated(job):
    job.answers["known"] = "31\n32"
    job.run()
    call, _ = job.calls[-1]
    assert call[:4] == ["api", "--method", "PATCH", "repos/me/mine/issues/comments/31"]
    chosen = next(call[-1] for call, _ in job.calls if "--paginate" in call)
    assert '.user.login == "github-actions[bot]"' in chosen
    assert 'startswith("<!-- pgtrial gate: gate -->")' in chosen


def test_a_given_pull_request_is_not_searched(job):
    job.variables["PULL_REQUEST"] = "3"
    assert job.run().returncode == 0
    assert "repos/me/mine/issues/3/comments" in job.calls[-1][0]


def test_the_newest_artefact_that_is_still_there_counts(job):
    job.answers["artefacts"] += [
        {"id": 8, "name": "pgtrial-gate", "expired": False, "size_in_bytes": 900},
        {"id": 9, "name": "pgtrial-gate", "expired": True, "size_in_bytes": 900},
        {"id": 10, "name": "pgtrial-other", "expired": False, "size_in_bytes": 900},
    ]
    job.run()
    assert "repos/me/mine/actions/artifacts/8/zip" in [call[-1] for call, _ in job.calls]


def broken_zip(job):
    (job.folder / "artefact.zip").write_bytes(b"PK\x03\x04 no more")


REFUSED = {
    "no artefact": (lambda job: job.answers.update(artefacts=[]), "the run has no artefact pgtrial-gate"),
    "too large": (lambda job: job.answers["artefacts"][0].update(size_in_bytes=10**12), "has 1000000000000 bytes"),
    "no archive": (broken_zip, "has no summary.md that can be read (BadZipFile)"),
    "other files": (lambda job: job.holds({"../summary.md": SUMMARY, "a": "b"}), "has no summary.md that can be read"),
    "another text": (lambda job: job.holds({"summary.md": "# buy\n" + SUMMARY}), "is not one of a gate"),
    "newer commit": (lambda job: job.variables.update(COMMIT="e" * 40), "a newer one has a run of its own"),
    "no run": (lambda job: job.variables.update(RUN=""), "on workflow_run, give both"),
    "odd number": (lambda job: job.variables.update(PULL_REQUEST="1/../2"), "on workflow_run, give both"),
    "no right": (lambda job: (job.folder / "forbidden").touch(), "Resource not accessible by integration (HTTP 403)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_written_is_one_sentence_in_the_log(job, case):
    spoil, words = REFUSED[case]
    spoil(job)
    (job.folder / "calls").touch()
    assert words in job.refused()


def test_a_text_that_unpacks_without_end_is_read_up_to_a_limit(job):
    job.holds({"summary.md": SUMMARY + "x" * 50_000_000})
    assert job.run().returncode == 0
    body = json.loads(job.calls[-1][1])["body"]
    assert len(body) < 65_536
    assert "(the rest is in the artefact)" in body


HOSTILE = {
    "<img src=x onerror=1>": "<",
    "@maintainer and @org/team": "@m",
    "&#64;maintainer": "&#",
    "[click](https://evil.example)": "](",
    "![pixel](//evil.example/a.png)": "](",
    "[a][b]\n\n[b]: //evil.example": "]:",
    "https://evil.example": "://",
    "www.evil.example": "www.",
    "fixes #123, me/mine#4 and GH-5": "#1",
    "a\u202etxt.exe\x1b[2J\x00\u200b": "\u202e",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markup_becomes_text(job, text):
    job.holds({"summary.md": f"{SUMMARY}\n{text}\n"})
    assert job.run().returncode == 0
    shown = json.loads(job.calls[-1][1])["body"].partition("-->\n")[2].partition("\nMeasured by")[0]
    assert HOSTILE[text] not in shown
    assert not re.search(r"GH-\d|#\d|@\w|[\x00-\x08\x1b]", shown)


@given(st.text())
def test_no_text_keeps_a_mention_a_link_or_html(text):
    shown = comment.plain(text)
    assert not re.search(r"@(?!\u200b)|<|://|\]\(|\]\[|\]:|#\d|\bwww\.|&(?!(amp|lt);)", shown, re.IGNORECASE)


BENCH = yaml.safe_load((ACTION.parent / "docs" / "ci" / "bench.yml").read_text())["jobs"]


def asked(tmp_path: Path, body: str, permission: str) -> tuple[int, str, str]:
    """Returns the exit status of the step that checks a comment, its output for other jobs, and what it prints."""
    fake = tmp_path / "gh"
    fake.write_text(f'#!/bin/sh\necho "$2" > asked\n{"exit 1" if permission == "unknown" else f"echo {permission}"}\n')
    fake.chmod(0o755)
    (step,) = BENCH["asked"]["steps"]
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "AUTHOR": "somebody",
        "BODY": body,
    }
    (tmp_path / "output").touch()
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (tmp_path / "asked").read_text() == "repos/me/mine/collaborators/somebody/permission\n"
    return done.returncode, (tmp_path / "output").read_text(), done.stdout


@pytest.mark.parametrize(
    ("body", "study"), [("/bench", "gate.toml"), ("/bench order", "order.toml"), ("/bench  a_b-1 \r\n", "a_b-1.toml")]
)
@pytest.mark.parametrize("permission", ["admin", "write"])
def test_who_may_write_starts_a_gate_by_a_comment(tmp_path, body, study, permission):
    assert asked(tmp_path, body, permission)[:2] == (0, f"study={study}\n")


@pytest.mark.parametrize("permission", ["read", "none", "unknown"])
def test_who_may_not_write_starts_nothing(tmp_path, permission):
    status, output, printed = asked(tmp_path, "/bench", permission)
    assert (status, output) == (1, "")
    assert "only those who may write" in printed


@pytest.mark.parametrize(
    "body", ["/bench ../x", "/bench $(touch stolen)", "/bench a.toml; rm", "/bench a\nx=y", "/bench ä"]
)
def test_a_comment_is_no_command_and_names_no_path(tmp_path, body):
    status, output, _ = asked(tmp_path, body, "write")
    assert (status, output) == (1, "")
    assert not (tmp_path / "stolen").exists()


def test_code_of_a_pull_request_runs_without_rights():
    assert BENCH["gate"]["permissions"] == {"contents": "read"}
    checkout, gate = BENCH["gate"]["steps"]
    assert checkout["with"]["persist-credentials"] is False
    assert gate["with"]["token"] == ""
    assert not [step for step in BENCH["comment"]["steps"] if "checkout" in step["uses"] or "run" in step]
