"""Histories on a branch of git: commits that touch nothing else, two writers, and what is refused."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgtrial.model.errors import PgtrialError, StoreError, StudyError
from pgtrial.store.histories.stores import read_history, store_of
from tests.histories import entry
from tests.repositories import IDENTITY, Repository


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Returns a repository with a commit on main, a change in its work tree and another one in its index."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made = Repository(tmp_path / "project")
    made.commit("first", {"a.c": "one\n", "b.c": "one\n"})
    (made.path / "a.c").write_text("staged\n")
    made.git("add", "a.c")
    (made.path / "b.c").write_text("changed\n")
    return made


def test_entries_are_commits_of_a_branch_of_their_own(repository):
    place = store_of("git:project@speed")
    head, before = repository.git("rev-parse", "HEAD"), repository.git("status", "--porcelain", "--branch")
    index = (repository.path / ".git" / "index").read_bytes()
    assert place.add("s", [entry(2, 0.1)])[1:] == (1, 0)
    assert place.add("s", [entry(1, 0.2), entry(2, 0.1)])[1:] == (1, 0)
    assert place.add("t", [entry(1, 0.3)])[1:] == (1, 0)
    assert place.names() == ["s", "t"]
    assert read_history(place, "s") == [entry(1, 0.2), entry(2, 0.1)]
    assert repository.git("log", "--format=%s", "speed").splitlines() == [
        "t: commit 1",
        "s: commit 1, commit 2",
        "s: commit 2",
    ]
    assert repository.git("rev-list", "--max-parents=0", "speed") != head
    tip = repository.git("rev-parse", "speed")
    assert place.add("t", [entry(1, 0.3)])[1:] == (0, 0)
    assert repository.git("rev-parse", "speed") == tip
    assert repository.git("status", "--porcelain", "--branch") == before
    assert (repository.path / ".git" / "index").read_bytes() == index
    assert repository.git("rev-parse", "HEAD") == head


def test_a_branch_of_another_repository_is_read_as_it_was_fetched_and_fetched_before_it_is_added_to(repository):
    store_of("git:project@speed").add("s", [entry(1, 0.1)])
    repository.git("clone", "--quiet", ".", "../clone")
    assert read_history(store_of("git:clone@origin/speed"), "s") == [entry(1, 0.1)]
    for use in (lambda place: place.names(), lambda place: place.add("s", [entry(2, 0.1)])):
        with pytest.raises(StudyError, match="no branch 'speed'; origin has it: run git fetch origin speed:speed"):
            use(store_of("git:clone@speed"))
    repository.git("-C", "../clone", "fetch", "--quiet", "origin", "speed:speed")
    store_of("git:clone@speed").add("s", [entry(2, 0.1)])
    repository.git("-C", "../clone", "push", "--quiet", "origin", "speed")
    assert len(read_history(store_of("git:project@speed"), "s")) == 2


def test_other_files_of_the_branch_stay(repository):
    place = store_of("git:project@speed")
    place.add("s", [entry(1, 0.1)])
    repository.git("worktree", "add", "--quiet", "../tree", "speed")
    for name in ("README.md", "folder/näme\n.txt"):
        path = repository.path.parent / "tree" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept\n")
    repository.git("-C", "../tree", "add", "--all")
    repository.git("-C", "../tree", "commit", "--quiet", "--message", "notes")
    repository.git("worktree", "remove", "../tree")
    before = repository.git("ls-tree", "-r", "-z", "speed").split("\0")
    place.add("t", [entry(1, 0.1)])
    after = repository.git("ls-tree", "-r", "-z", "speed").split("\0")
    assert len(before) == 4
    assert set(before) < set(after)


def test_writers_at_the_same_time_lose_no_entry(repository):
    with ThreadPoolExecutor(6) as writers:
        done = list(writers.map(lambda place: store_of("git:project@speed").add("s", [entry(place, 0.1)]), range(12)))
    assert [result.new for result in done] == [1] * 12
    assert len(read_history(store_of("git:project@speed"), "s")) == 12
    assert len(repository.git("rev-list", "speed").splitlines()) == 12


def test_a_branch_that_always_moves_is_left_to_its_other_writer(repository, tmp_path, monkeypatch):
    real = shutil.which("git")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\ncase $* in *' update-ref '*)\n"
        f"new=$({real} -C project commit-tree -p speed -m $$ speed^{{tree}})\n"
        f'{real} -C project update-ref refs/heads/speed $new;;\nesac\nexec {real} "$@"\n'
    )
    program.chmod(0o755)
    store_of("git:project@speed").add("s", [entry(0, 0.1)])
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    sentence = r"pgtrial added nothing, because git could not update the branch \(.* but expected .*\); try again"
    with pytest.raises(StoreError, match=sentence):
        store_of("git:project@speed").add("s", [entry(1, 0.1)])
    assert int(repository.git("rev-list", "--count", "speed")) > 2
    assert read_history(store_of("git:project@speed"), "s") == [entry(0, 0.1)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git:nothing@speed", "there is no directory nothing; name a directory that is a git repository"),
        ("git:plain@speed", r"not a git repository .*; name a directory that is a git repository"),
        (
            "git:project@main",
            "the branch is checked out, and a new commit would not change its files in the work tree; name a branch "
            "that is not",
        ),
        ("git:project@tree", "the branch is checked out"),
        (
            "git:project@code",
            "the branch has files but no history; name a branch that does not exist yet, which pgtrial will",
        ),
        ("git:project@a..b", "'a..b' is not a valid name of a branch; write git:PATH@BRANCH"),
        ("git:project@" + "1" * 40, "is not a valid name of a branch"),
        ("git:project", "names no commit"),
        (
            "git:https://example.org/project@speed",
            "is not on this machine; fetch its branch into a repository on this machine",
        ),
        ("source:project", "cannot contain histories; write the path of a directory, or git:PATH@BRANCH"),
    ],
)
def test_what_cannot_be_added_to_is_one_sentence(repository, tmp_path, text, words):
    (tmp_path / "plain").mkdir()
    repository.git("branch", "code")
    repository.git("worktree", "add", "--quiet", "../tree")
    with pytest.raises(PgtrialError, match=words) as error:
        store_of(text).add("s", [entry(1, 0.1)])
    assert str(error.value).startswith(text)
    assert "speed" not in repository.git("branch", "--list")


def test_a_branch_that_is_not_there_is_answered_with_what_begins_it(repository):
    with pytest.raises(
        StudyError, match="no branch 'speed'; `pgtrial history add BUNDLE --in git:project@speed` creates"
    ):
        store_of("git:project@speed").names()


def test_a_commit_needs_a_name(repository, monkeypatch):
    for name in IDENTITY:
        if "GIT_CONFIG" not in name:
            monkeypatch.delenv(name)
    repository.git("config", "user.useConfigOnly", "true")
    with pytest.raises(StudyError, match="git has no name and e-mail address for a commit; set"):
        store_of("git:project@speed").add("s", [entry(1, 0.1)])


def test_git_may_be_missing(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StudyError, match="git is needed to read a repository, and is not installed; install git"):
        store_of("git:project@speed").names()


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (
            "100644",
            b'{"format": 1}\n',
            r"speed:s.jsonl, line 1 is damaged \(study: Field required\); remove",
        ),
        ("100644", b"\xff\n", r"git:project@speed:s.jsonl, line 1 is damaged \(it is not JSON\)"),
        ("120000", b"elsewhere", "git:project@speed:s.jsonl is not a regular file; correct the branch"),
    ],
)
def test_a_file_that_was_edited_is_named(repository, kind, text, words):
    (repository.path / "edited").write_bytes(text)
    blob = repository.git("hash-object", "-w", "edited")
    repository.git("update-index", "--add", "--cacheinfo", f"{kind},{blob},s.jsonl")
    repository.git("branch", "speed", repository.git("commit-tree", "-m", "edited", repository.git("write-tree")))
    place = store_of("git:project@speed")
    assert place.names() == ["s"]
    for use in (lambda: read_history(place, "s"), lambda: place.add("s", [entry(1, 0.1)])):
        with pytest.raises(StoreError, match=words):
            use()
