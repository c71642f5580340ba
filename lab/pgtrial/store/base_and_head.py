"""The two commits that a gate compares where its user names none: HEAD of a repository, and the commit before the
change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.store import git
from pgtrial.store.repositories import Commit, commit_of, is_ancestor

_WITHOUT_REF = re.compile(r"\bgit:((?:[^@,\s:]|:(?=/))+)(?=[,\s]|$)")
"""Matches a repository in a set-up that names no ref: `postgres=git:.`."""
_NAME = re.compile(r"[A-Za-z][\w.+-]*=(?=[A-Za-z_][\w.]*\s*=)")
"""Matches the name in front of a set-up: `mine=postgres=git:.`."""
_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""The variables in which GitHub and GitLab give the branch that a pull or merge request is for."""
_USUAL_TARGETS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_DEEPER = (
    "this clone has a part of the history alone; fetch all of it (fetch-depth: 0 on GitHub, GIT_DEPTH: 0 on GitLab)"
)


@dataclass(frozen=True)
class Compared:
    """The two commits that a gate compares, as set-ups of the command line, and the reason for this choice."""

    base: str
    head: str
    why: str


def compared(setup: str, environment: Mapping[str, str]) -> Compared:
    """Returns BASE and HEAD of a gate whose single set-up has a repository without a ref, such as `postgres=git:.`.

    `environment` has the variables of the runner. Raises StudyError if the set-up names no repository of this machine
    without a ref, or several, or if the commits cannot be found.
    """
    repositories = sorted(set(_WITHOUT_REF.findall(setup)))
    if not repositories:
        raise StudyError(
            f"{setup!r} alone is no gate, since it has no repository without a commit; name BASE and HEAD, or one "
            "set-up such as postgres=git:."
        )
    if len(repositories) > 1:
        raise StudyError(
            f"{setup!r} has several repositories without a commit ({', '.join(repositories)}); write a commit behind @ "
            "for all but the one that changes"
        )
    if "://" in repositories[0]:
        raise StudyError(f"git:{repositories[0]} is not on this machine; clone it, or name BASE and HEAD")
    base, head, why = _commits(Path(repositories[0]).expanduser(), environment)
    plain = _NAME.sub("", setup, count=1)
    texts = [_WITHOUT_REF.sub(rf"\g<0>@{commit.id}", plain) for commit in (base, head)]
    return Compared(f"base={texts[0]}", f"head={texts[1]}", f"base is {base.short}, {why}; head is {head.short}")


def _commits(repository: Path, environment: Mapping[str, str]) -> tuple[Commit, Commit, str]:
    """Returns the commit before a change, HEAD, and in words what the first of them is."""
    head, where = commit_of(repository, "HEAD"), f"git:{repository}"
    if not head.parents:
        shallow = git.output(repository, where, "rev-parse", "--is-shallow-repository").strip() == "true"
        raise StudyError(f"{where}: {_DEEPER if shallow else 'HEAD is the first commit, and there is none before it'}")
    merged = len(head.parents) > 1
    if merged and _is_made_by_the_forge(repository, environment):
        return commit_of(repository, head.parents[0]), head, "into which the change is to be merged"
    there = (name for name in _targets(environment) if git.commit_named(repository, name) is not None)
    if (target := next(there, None)) is not None:
        common = git.run(repository, "merge-base", "HEAD", target).stdout.strip()
        if not common:
            raise StudyError(f"{where}: HEAD and {target} have no commit in common here; {_DEEPER}")
        if common != head.id:
            return commit_of(repository, common), head, f"where HEAD has left {target.removeprefix('refs/remotes/')}"
    if (before := _before_push(repository, head, environment)) is not None:
        return before, head, "the commit before what was pushed"
    words = "the first parent of HEAD, which is a merge" if merged else "the commit before HEAD"
    return commit_of(repository, head.parents[0]), head, words


def _is_made_by_the_forge(repository: Path, environment: Mapping[str, str]) -> bool:
    """True if HEAD, which is a merge, is the one that GitHub or GitLab has made of a change and its target for a run.
    It is on no branch. GitLab checks out commits of branches in the same way, and says by a variable which it is."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return git.run(repository, "symbolic-ref", "--quiet", "HEAD").returncode != 0
    return environment.get("CI_MERGE_REQUEST_EVENT_TYPE") in ("merged_result", "merge_train")


def _targets(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields the branches into which a change may go, the most probable first."""
    for name in filter(None, map(environment.get, _TARGETS)):
        yield from (f"refs/remotes/origin/{name}", f"refs/heads/{name}")
    yield from _USUAL_TARGETS


def _before_push(repository: Path, head: Commit, environment: Mapping[str, str]) -> Commit | None:
    """Returns the commit at which the branch was before a push, as the runner gives it; None if it does not, or if HEAD
    does not follow from that commit, as after a forced push."""
    before = environment.get("CI_COMMIT_BEFORE_SHA", "")
    with suppress(OSError, ValueError, AttributeError):
        if environment.get("GITHUB_EVENT_NAME") == "push":
            before = str(json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8")).get("before"))
    if not re.fullmatch(r"[0-9a-f]{40,64}", before) or before == head.id or not is_ancestor(repository, before, "HEAD"):
        return None
    return commit_of(repository, before)
