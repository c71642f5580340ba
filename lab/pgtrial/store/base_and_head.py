"""Finds the two commits that a gate (a comparison whose exit status decides whether a change passes) compares if its
user names none: HEAD of a repository, and the commit before the change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.store import git
from pgtrial.store.repositories import Commit, commit_of, is_ancestor

_WITHOUT_REF = re.compile(r"\bgit:((?:[^@,\s:]|:(?=/))+)(?=[,\s]|$)")
"""Matches a git repository that is named without a ref (branch, tag or commit) in a set-up of the command line:
`postgres=git:.`."""
_NAME = re.compile(r"[A-Za-z][\w.+-]*=(?=[A-Za-z_][\w.]*\s*=)")
"""Matches the name of the arm, with its equals sign, at the beginning of a set-up: `mine=postgres=git:.`."""
_TARGETS = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""The environment variables in which GitHub and GitLab name the target branch of a pull or merge request."""
_USUAL_TARGETS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_DEEPER = (
    "this clone has only a part of the history; fetch all of it (fetch-depth: 0 on GitHub, GIT_DEPTH: 0 on GitLab)"
)


@dataclass(frozen=True)
class Compared:
    """The two commits that a gate (a comparison whose exit status decides whether a change passes) compares, as set-ups
    for the command line, with a phrase that says why pgtrial chose these commits."""

    base: str
    head: str
    why: str


def compared(setup: str, environment: Mapping[str, str]) -> Compared:
    """Returns the two commits that a gate compares, base and head, if the user gave a single set-up that names a
    repository without a ref, such as `postgres=git:.`.

    `environment` has the environment variables of the CI runner. Raises StudyError if the set-up does not name exactly
    one repository without a ref, if that repository is not on this machine, or if the commits cannot be found.
    """
    repositories = sorted(set(_WITHOUT_REF.findall(setup)))
    if not repositories:
        raise StudyError(
            f"a gate needs two set-ups to compare, and {quoted(setup)} is only one; name BASE and HEAD, or one set-up "
            "with a repository, such as postgres=git:."
        )
    if len(repositories) > 1:
        raise StudyError(
            f"{quoted(setup)} has several repositories without a commit ({', '.join(repositories)}); write a commit "
            "behind @ for all of them except the one whose change is tested"
        )
    if "://" in repositories[0]:
        raise StudyError(f"git:{repositories[0]} is not on this machine; clone it, or name BASE and HEAD")
    base, head, why = _commits(Path(repositories[0]).expanduser(), environment)
    plain = _NAME.sub("", setup, count=1)
    texts = [_WITHOUT_REF.sub(rf"\g<0>@{commit.id}", plain) for commit in (base, head)]
    return Compared(f"base={texts[0]}", f"head={texts[1]}", f"base is {base.short}, {why}; head is {head.short}")


def _commits(repository: Path, environment: Mapping[str, str]) -> tuple[Commit, Commit, str]:
    """Returns the commit before the change, HEAD, and a phrase for the first of them, such as why it is the commit
    before the change."""
    head, where = commit_of(repository, "HEAD"), f"git:{repository}"
    if not head.parents:
        shallow = git.output(repository, where, "rev-parse", "--is-shallow-repository").strip() == "true"
        raise StudyError(
            f"{where}: "
            f"{_DEEPER if shallow else 'HEAD is the first commit, so there is no earlier commit to compare it with'}"
        )
    merged = len(head.parents) > 1
    if merged and _is_made_by_the_forge(repository, environment):
        return commit_of(repository, head.parents[0]), head, "the commit into which the change is to be merged"
    there = (name for name in _targets(environment) if git.commit_named(repository, name) is not None)
    if (target := next(there, None)) is not None:
        common = git.run(repository, "merge-base", "HEAD", target).stdout.strip()
        if not common:
            raise StudyError(f"{where}: HEAD and {target} have no common commit in this repository; {_DEEPER}")
        if common != head.id:
            return (
                commit_of(repository, common),
                head,
                f"the last common commit of HEAD and {target.removeprefix('refs/remotes/')}",
            )
    if (before := _before_push(repository, head, environment)) is not None:
        return before, head, "the commit before the push"
    words = "the first parent of HEAD, which is a merge" if merged else "the commit before HEAD"
    return commit_of(repository, head.parents[0]), head, words


def _is_made_by_the_forge(repository: Path, environment: Mapping[str, str]) -> bool:
    """True if HEAD, which is a merge, was made by GitHub or GitLab for this run, by merging a change into its target
    branch. On GitHub, such a commit is on no branch. GitLab checks out every commit without its branch, so there the
    environment variables of the CI run decide."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return git.run(repository, "symbolic-ref", "--quiet", "HEAD").returncode != 0
    return environment.get("CI_MERGE_REQUEST_EVENT_TYPE") in ("merged_result", "merge_train")


def _targets(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields refs of branches into which the change may be merged, the most probable first."""
    for name in filter(None, map(environment.get, _TARGETS)):
        yield from (f"refs/remotes/origin/{name}", f"refs/heads/{name}")
    yield from _USUAL_TARGETS


def _before_push(repository: Path, head: Commit, environment: Mapping[str, str]) -> Commit | None:
    """Returns the commit to which the branch pointed before a push, as the CI runner reports it; None if the runner
    does not report it, or if HEAD does not descend from it, as after a forced push."""
    before = environment.get("CI_COMMIT_BEFORE_SHA", "")
    with suppress(OSError, ValueError, AttributeError):
        if environment.get("GITHUB_EVENT_NAME") == "push":
            before = str(json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8")).get("before"))
    if not re.fullmatch(r"[0-9a-f]{40,64}", before) or before == head.id or not is_ancestor(repository, before, "HEAD"):
        return None
    return commit_of(repository, before)
