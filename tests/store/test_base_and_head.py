"""The commits that a gate of one set-up compares."""

from __future__ import annotations

import json
import subprocess

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.store.base_and_head import compared
from tests.repositories import Repository


class Changed(Repository):
    """A repository whose changes are compared."""

    def next(self, subject: str) -> str:
        return self.commit(subject, {})

    def branch(self, name: str, at: str) -> None:
        self.git("checkout", "--quiet", "-B", name, at)

    def merge(self, of: str) -> str:
        self.git("merge", "--quiet", "--no-ff", "--message", "merge", of)
        return self.git("rev-parse", "HEAD")

    def compared(self, **environment: str) -> tuple[str, str]:
        found = compared(f"postgres=git:{self.path}", environment)
        prefix = f"postgres=git:{self.path}@"
        return found.base.removeprefix(f"base={prefix}"), found.head.removeprefix(f"head={prefix}")


@pytest.fixture
def repository(tmp_path):
    return Changed(tmp_path / "repository")


def test_a_branch_is_compared_with_the_commit_at_which_it_left_its_target(repository):
    first = repository.next("first")
    repository.branch("change", first)
    repository.next("change 1")
    change = repository.next("change 2")
    repository.branch("main", first)
    repository.next("work of others")
    repository.branch("change", change)
    assert repository.compared() == (first, change)


def test_a_branch_into_which_its_target_was_merged_is_compared_with_that_commit(repository):
    first = repository.next("first")
    repository.branch("change", first)
    repository.next("change")
    repository.branch("main", first)
    others = repository.next("work of others")
    repository.branch("change", "change")
    merge = repository.merge("main")
    assert repository.compared() == (others, merge)


def test_a_rebased_branch_is_compared_with_what_it_was_rebased_on(repository):
    first = repository.next("first")
    repository.branch("change", first)
    repository.next("change")
    repository.branch("main", first)
    others = repository.next("work of others")
    repository.git("rebase", "--quiet", "main", "change")
    base, head = repository.compared()
    assert (base, head) == (others, repository.git("rev-parse", "change"))


@pytest.mark.parametrize(
    "variables",
    [
        {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "stable"},
        {"GITHUB_ACTIONS": "true"},  # a comment has started the run
        {"CI_MERGE_REQUEST_EVENT_TYPE": "merged_result"},
        {"CI_MERGE_REQUEST_EVENT_TYPE": "merge_train"},
    ],
)
def test_the_merge_commit_of_a_pull_request_is_compared_with_its_first_parent(repository, variables):
    old = repository.next("old")
    repository.git("branch", "stable", old)
    first = repository.next("first")
    repository.branch("change", first)
    repository.next("change")
    repository.branch("main", first)
    others = repository.next("work of others")
    repository.git("checkout", "--quiet", "--detach")
    merge = repository.merge("change")
    repository.git("branch", "--quiet", "--force", "main", old)  # the branch that it is not for
    assert repository.compared(**variables) == (others, merge)
    assert repository.compared() == (old, merge)


@pytest.mark.parametrize("name", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
def test_the_target_branch_that_the_runner_names_counts(repository, name):
    repository.next("first")
    stable = repository.next("stable")
    repository.git("update-ref", "refs/remotes/origin/stable", stable)
    repository.next("of main")
    repository.branch("change", "main")
    change = repository.next("change")
    assert repository.compared(**{name: "stable"}) == (stable, change)


def test_a_commit_on_its_target_branch_is_compared_with_the_one_before_the_push(repository, tmp_path):
    pushed = [repository.next(f"{number}") for number in range(4)]
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"before": pushed[1]}))
    github = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(event)}
    assert repository.compared(**github) == (pushed[1], pushed[3])
    assert repository.compared(CI_COMMIT_BEFORE_SHA=pushed[0]) == (pushed[0], pushed[3])
    assert repository.compared() == (pushed[2], pushed[3])
    for before in ("0" * 40, "f" * 40, pushed[3], None, ["x"], "--help"):  # a new branch, a forced push, and no commits
        event.write_text(json.dumps({"before": before}))
        assert repository.compared(**github) == (pushed[2], pushed[3])
    for text in ("", "[]", "{}", "no JSON"):
        event.write_text(text)
        assert repository.compared(**github) == (pushed[2], pushed[3])
    assert repository.compared(**{**github, "GITHUB_EVENT_PATH": str(tmp_path / "absent")}) == (pushed[2], pushed[3])


def test_a_shallow_clone_is_a_sentence_with_the_cure(repository, tmp_path):
    first = repository.next("first")
    repository.branch("change", first)
    repository.next("change 1")
    repository.next("change 2")
    repository.branch("main", first)
    for depth, words in (
        (1, "this clone has only a part"),
        (2, "have no common commit in this repository; this clone has only a part"),
    ):
        clone = tmp_path / f"clone-{depth}"
        options = [f"--depth={depth}", "--no-single-branch", "--branch=change"]
        subprocess.run(["git", "clone", "--quiet", *options, f"file://{repository.path}", clone], check=True)
        with pytest.raises(StudyError, match=rf"{words}.*fetch-depth: 0 on GitHub"):
            compared(f"postgres=git:{clone}", {})


def test_other_keys_names_and_several_sources_of_the_repository_stay(repository):
    repository.next("first")
    head = repository.next("second")
    where = f"git:{repository.path}"
    found = compared(f"mine=postgres={where},extensions={where} {where}/sub@v1,work_mem=64MB", {})
    assert found.head == f"head=postgres={where}@{head},extensions={where}@{head} {where}/sub@v1,work_mem=64MB"
    assert f"head is {head[:10]}" in found.why


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        ("work_mem=4MB", "a gate needs two set-ups to compare, and 'work_mem=4MB' is only one; name BASE and HEAD"),
        (
            "postgres=git:.@main",
            "and 'postgres=git:.@main' is only one; name BASE and HEAD, or one set-up with a repository",
        ),
        ("postgres=git:a,extensions=git:b", r"several repositories without a commit \(a, b\)"),
        ("postgres=git:https://example.org/x.git", "is not on this machine; clone it"),
        ("postgres=git:/no/such/place", "there is no directory /no/such/place"),
    ],
)
def test_a_set_up_whose_commits_cannot_be_found_is_refused(setup, words):
    with pytest.raises(StudyError, match=words):
        compared(setup, {})


def test_a_first_commit_has_none_before_it(repository):
    repository.next("first")
    with pytest.raises(StudyError, match="HEAD is the first commit"):
        repository.compared()
