"""Sources of a study: refs become commits once, directories get a digest, and what cannot be had is said at once."""

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.sources import source_of
from pgtrial.store import repositories
from pgtrial.store.sources import described, export
from pgtrial.store.study_file import build_study
from tests.repositories import Repository


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path / "source")
    made.commit("first", {"configure": "#!/bin/sh\n", "src/a.c": "one\n", ".gitignore": "*.o\n"})
    made.git("tag", "v1")
    made.commit("second", {"src/a.c": "two\n"})
    return made


def postgres_of(folder, *texts):
    """Returns the values of `postgres` of the arms in the planned study."""
    arms = {f"arm {number}": {"postgres": text} for number, text in enumerate(texts)}
    spec = build_study({"arms": {**arms, "other": {}}}, "test", folder)
    return [spec.arms[arm].postgres for arm in arms]


def test_a_ref_becomes_the_commit_that_it_names_now(repository, tmp_path):
    commits = repository.git("log", "--format=%H").split()
    for ref, commit in [("main", 0), ("HEAD~1", 1), ("v1", 1), (commits[1][:8], 1), (commits[0], 0)]:
        assert postgres_of(tmp_path, f"git:source@{ref}") == [f"git:{repository.path}@{commits[commit]}"]


def test_a_ref_of_a_url_becomes_a_commit_and_its_files_are_fetched_when_they_are_needed(repository, tmp_path):
    repository.git("tag", "--annotate", "--message=x", "v2", "v1")
    url = f"file://{repository.path}"
    [tag, branch] = postgres_of(tmp_path, f"git:{url}@v2", f"git:{url}@main")
    assert tag == f"git:{url}@{repository.git('rev-parse', 'v1')}"
    export(source_of(branch), tmp_path / "files", print)
    assert (tmp_path / "files" / "src" / "a.c").read_text() == "two\n"
    assert described(source_of(branch)) == "second"


def test_the_files_of_a_commit_are_those_of_the_commit_whatever_the_work_tree_has(repository, tmp_path):
    (repository.path / "src" / "a.c").write_text("changed\n")
    [text] = postgres_of(tmp_path, "git:source@v1")
    export(source_of(text), tmp_path / "files", print)
    assert (tmp_path / "files" / "src" / "a.c").read_text() == "one\n"
    assert (tmp_path / "files" / "configure").stat().st_mode & 0o111
    assert described(source_of(text)) == "first"


def test_files_that_git_leaves_out_of_archives_belong_to_a_commit_too(repository, tmp_path):
    (repository.path / ".gitattributes").write_text("/src export-ignore\nconfigure export-subst\n")
    (repository.path / "configure").write_text("# $Format:%H$\n")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message=third")
    [text] = postgres_of(tmp_path, "git:source@main")
    export(source_of(text), tmp_path / "files", print)
    assert (tmp_path / "files" / "src" / "a.c").read_text() == "two\n"
    assert (tmp_path / "files" / "configure").read_text() == "# $Format:%H$\n"


def test_a_directory_with_a_source_is_taken_as_it_is_without_what_git_ignores(repository, tmp_path):
    (repository.path / "src" / "new.c").write_text("new\n")
    (repository.path / "src" / "a.o").write_text("object\n")
    [named, bare] = postgres_of(tmp_path, "source:source", "source/")
    assert named == bare
    export(source_of(named), tmp_path / "files", print)
    names = {str(path.relative_to(tmp_path / "files")) for path in (tmp_path / "files").rglob("*") if path.is_file()}
    assert names == {".gitignore", "configure", "src/a.c", "src/new.c"}
    assert described(source_of(named)).endswith("changed files: 1")


def test_a_directory_that_is_no_repository_is_taken_as_a_whole(tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "meson.build").write_text("project('x')\n")
    [text] = postgres_of(tmp_path, f"{tmp_path}/plain")
    export(source_of(text), tmp_path / "files", print)
    assert (tmp_path / "files" / "meson.build").is_file()
    assert described(source_of(text)) == ""


@pytest.mark.parametrize("change", ["src/a.c", "src/another.c"])
def test_a_directory_that_has_changed_since_the_study_was_planned_is_not_built(repository, tmp_path, change):
    [text] = postgres_of(tmp_path, "source:source")
    (repository.path / change).write_text("later\n")
    with pytest.raises(StudyError, match="its files have changed since the study was planned"):
        export(source_of(text), tmp_path / "files", print)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git:source@nowhere", "the repository has no commit 'nowhere'"),
        ("git:nothing@main", "there is no directory"),
        ("git:plain@main", "not a git repository .*; name a directory that is a git repository"),
        ("git:file://{folder}/source@nowhere", "the repository has no branch or tag 'nowhere'"),
        ("git:file://{folder}/nothing@main", "does not appear to be a git repository"),
        ("source:nothing", "there is no directory"),
        ("source:plain", "the directory has no files"),
    ],
)
def test_what_cannot_be_had_is_said_when_the_study_is_read(repository, tmp_path, monkeypatch, text, words):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    with pytest.raises(StudyError, match=rf"test: \[arms.arm 0\] .*{words}"):
        postgres_of(tmp_path, text.format(folder=tmp_path))


@pytest.mark.parametrize("text", ["git:source@main", "source:source"])
@pytest.mark.usefixtures("repository")
def test_a_repository_of_another_account_is_read_only_if_the_user_trusts_it(tmp_path, monkeypatch, text):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(StudyError, match=r"detected dubious ownership .*; if you trust the repository, run git config"):
        postgres_of(tmp_path, text)


def test_commands_that_a_repository_names_are_not_run(repository, tmp_path):
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(trap))
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (repository.path / ".git" / "hooks" / hook).write_text(trap.read_text())
        (repository.path / ".git" / "hooks" / hook).chmod(0o755)
    for driver in ("smudge", "clean", "process"):
        repository.git("config", f"filter.evil.{driver}", f"{trap}; cat")
    for name in ("core.sshCommand", "core.pager", "diff.external", "core.alternateRefsCommand", "gpg.program"):
        repository.git("config", name, str(trap))
    repository.git("config", "tar.tar.command", str(trap))
    repository.git("config", "uploadpack.packObjectsHook", str(trap))
    repository.git("config", "log.showSignature", "true")
    (repository.path / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    for path in repository.path.glob("*.*"):
        path.touch()  # of another time than in the index, so that git compares the contents
    sources = ("git:source@v1", "source:source", f"git:file://{repository.path}@v1")
    for number, text in enumerate(postgres_of(tmp_path, *sources)):
        export(source_of(text), tmp_path / str(number), print)
        described(source_of(text))
    assert not (tmp_path / "sprung").exists()


def test_the_commits_between_two_are_ordered_and_merges_may_count_as_one(repository):
    repository.git("checkout", "--quiet", "-b", "side", "v1")
    repository.commit("on the side", {"side.c": "x"})
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message=merge", "side")
    good, bad = repository.git("rev-parse", "v1"), repository.git("rev-parse", "main")
    between = repositories.commits_between(repository.path, good, bad)
    assert {commit.subject for commit in between} == {"second", "on the side", "merge"}
    assert between[-1].subject == "merge"
    assert len(between[-1].parents) == 2
    main = repositories.commits_between(repository.path, good, bad, first_parent=True)
    assert [commit.subject for commit in main] == ["second", "merge"]
