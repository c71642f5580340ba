"""Writes the summary of a gate as a comment on its pull request, from the artefact of the run that measured it.

The run may be that of a stranger's pull request: the artefact can hold anything. It is never unpacked, one file of it
is read up to a limit, and its text loses all that Markdown of GitHub takes for markup of HTML, a link, an image, a
mention or a reference. The pull request is found by the run that GitHub itself names, and never by the artefact.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
import zipfile

_FILE, _TITLE = "summary.md", "### pgtrial gate: "
_LARGEST_ARTEFACT, _LARGEST_TEXT = 200_000_000, 60_000
"""The largest artefact that is fetched, bytes, and the most characters of a summary: a comment holds 65,536."""

_GAP = "\u200b"
"""A space without width. Put into a mention or a link, it makes plain text of it."""

_BROKEN = (
    ("&", "&amp;"),  # GitHub reads &#64; as @, and then as a mention
    ("<", "&lt;"),
    ("@", f"@{_GAP}"),
    ("://", f":{_GAP}//"),
    ("](", f"]{_GAP}("),
    ("][", f"]{_GAP}["),
    ("]:", f"]{_GAP}:"),
)
_BROKEN_WORDS = (
    (re.compile(r"#(?=\d)"), f"#{_GAP}"),
    (re.compile(r"\bGH-(?=\d)", re.IGNORECASE), f"GH{_GAP}-"),
    (re.compile(r"\bwww\.", re.IGNORECASE), f"www{_GAP}."),
)


class Refused(Exception):
    """There is nothing to write a comment of, or nowhere to write it; the message is for the log of the job."""


def plain(text: str) -> str:
    """Returns a summary as text that mentions nobody, links to nothing and has no markup but that of its tables."""
    text = text.replace("\r\n", "\n")
    text = "".join(
        char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )
    for found, put in _BROKEN:
        text = text.replace(found, put)
    for pattern, put in _BROKEN_WORDS:
        text = pattern.sub(put, text)
    return text


def summary_in(artefact: bytes) -> str:
    """Returns the summary that an artefact holds, as plain text. Raises Refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(artefact)) as archive, archive.open(_FILE) as file:
            text = file.read(4 * _LARGEST_TEXT + 1).decode(errors="replace")
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise Refused(f"the artefact has no {_FILE} that can be read ({type(error).__name__})") from None
    if not text.startswith(_TITLE):
        raise Refused(f"the {_FILE} of the artefact is not one of a gate")
    shown = plain(text)
    return shown if len(shown) <= _LARGEST_TEXT else f"{shown[:_LARGEST_TEXT]}\n\n(the rest is in the artefact)"


def gh(*arguments: str, text_in: str | None = None) -> bytes:
    """Returns what a request to GitHub gives. Raises Refused."""
    done = subprocess.run(
        ["gh", "api", *arguments], input=None if text_in is None else text_in.encode(), capture_output=True, check=False
    )
    if done.returncode != 0:
        raise Refused(done.stderr.decode(errors="replace").strip() or f"gh ended with status {done.returncode}")
    return done.stdout


def fetched(repository: str, run: str, name: str) -> bytes:
    """Returns the artefact of a gate from a run. Raises Refused."""
    wanted = f"pgtrial-{name}"
    listed = json.loads(
        gh("--method", "GET", f"repos/{repository}/actions/runs/{run}/artifacts", "-f", f"name={wanted}")
    )
    found = [artefact for artefact in listed["artifacts"] if artefact["name"] == wanted and not artefact["expired"]]
    if not found:
        raise Refused(f"the run has no artefact {wanted}: its gate has not come so far")
    newest = max(found, key=lambda artefact: int(artefact["id"]))
    if int(newest["size_in_bytes"]) > _LARGEST_ARTEFACT:
        raise Refused(f"the artefact has {newest['size_in_bytes']} bytes, more than any gate writes")
    return gh(f"repos/{repository}/actions/artifacts/{int(newest['id'])}/zip")


def pull_request_of(repository: str, owner: str, branch: str, commit: str) -> int:
    """Returns the open pull request whose branch and commit are those of the run. Raises Refused."""
    words = ("-f", "state=open", "-f", f"head={owner}:{branch}")
    listed = json.loads(gh("--method", "GET", f"repos/{repository}/pulls", *words))
    numbers = [int(pull["number"]) for pull in listed if pull["head"]["sha"] == commit]
    if not numbers:
        raise Refused("no open pull request has this commit as its last; a newer one has a run of its own")
    return numbers[0]


def write(repository: str, number: int, marker: str, body: str) -> None:
    """Updates the comment of this gate, or writes it where there is none. Raises Refused."""
    try:
        own = gh("graphql", "--field", "query={ viewer { login } }", "--jq", ".data.viewer.login").decode().strip()
    except Refused:
        own = "github-actions[bot]"
    comments = f"repos/{repository}/issues/{number}/comments"
    # anybody may write a comment that begins with the marker: only one of the token's own account is ours
    chosen = f".[] | select(.user.login == {json.dumps(own)}) | select(.body | startswith({json.dumps(marker)})) | .id"
    known = gh("--paginate", comments, "--jq", chosen).split()
    where = ("PATCH", f"repos/{repository}/issues/comments/{int(known[0])}") if known else ("POST", comments)
    gh("--method", *where, "--input", "-", text_in=json.dumps({"body": f"{marker}\n{body}"}))


def main() -> None:
    """Writes the comment, or says in the job's log why there is none. Exits with status 3 if it cannot be written."""
    repository, run, name = (os.environ[variable] for variable in ("GITHUB_REPOSITORY", "RUN", "NAME"))
    try:
        given = os.environ["PULL_REQUEST"]
        if not run.isdecimal() or not (given.isdecimal() or not given):
            raise Refused("run and pull-request are numbers; in a workflow that is not on workflow_run, give both")
        number = (
            int(given)
            if given
            else pull_request_of(repository, *(os.environ[variable] for variable in ("OWNER", "BRANCH", "COMMIT")))
        )
        body = summary_in(fetched(repository, run, name))
        source = f"https://github.com/{repository}/actions/runs/{run}"
        note = (
            f"Measured by [a run]({source}) without any rights, with the workflow and the study of the pull request, "
            "which may have changed them."
        )
        write(repository, number, f"<!-- pgtrial gate: {re.sub('[^A-Za-z0-9_.-]', '-', name)} -->", f"{body}\n{note}\n")
    except Refused as error:
        # commands of the runner begin with two colons at the beginning of a line
        words = " ".join(plain(str(error)).split()).replace("%", "%25")
        sys.stdout.write(f"::error::no comment is written: {words}\n")
        sys.exit(3)


if __name__ == "__main__":
    main()
