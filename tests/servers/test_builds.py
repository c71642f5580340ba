"""Builds from source: made once by their own commands, kept, shared, and explained in one message when they fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pgtrial.cli.here import cleanup_command, list_command
from pgtrial.model.errors import StudyError
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.servers.builds.commands import Commands, last_words
from pgtrial.servers.builds.kept import BuildError, BuildInUse, Builds, record_beside
from pgtrial.servers.builds.of_study import built
from pgtrial.servers.builds.training import Profile
from pgtrial.servers.installations import resolve
from pgtrial.store.study_file import build_study
from tests.conftest import require, require_server
from tests.repositories import Repository, extension_files, linked_server_files, server_files


def _unheard(text):
    pytest.fail(f"nothing was to be said: {text}")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("builds")


@pytest.fixture(scope="module")
def builds(home):
    store = Builds(home / "state")
    yield store
    store.close()


@pytest.fixture(scope="module")
def servers(home):
    """Commits that build: one, two; that does not: broken; without any file: nothing."""
    installed = require_server(17).bin.parent
    repository = Repository(home / "postgres")
    for name, broken in [("one", ""), ("two", ""), ("broken", "int x = ;\n")]:
        repository.commit(name, server_files(installed, name, broken))
        repository.git("tag", name)
    no_files = repository.git("hash-object", "-w", "-t", "tree", "/dev/null")
    repository.git("tag", "nothing", repository.git("commit-tree", "-m", "no file", no_files))
    return repository


@pytest.fixture(scope="module")
def extension(home):
    repository = Repository(home / "extension")
    repository.commit("quick", extension_files())
    repository.git("tag", "quick")
    repository.commit("slow", extension_files(1000, "2.0"))
    repository.git("tag", "slow")
    return repository


def study(home, arms, **server):
    return build_study({"server": server, "arms": arms}, "test", home)


def test_two_commits_of_a_server_are_two_installations_that_run(home, builds, servers, run_directory):
    said = []
    spec = study(home, {"a": {"postgres": "git:postgres@one"}, "b": {"postgres": "git:postgres@two"}})
    with_builds = built(spec, builds, run_directory, said.append)
    programs = [Path(with_builds.resolved(arm).postgres) for arm in ("a", "b")]
    assert [(resolve(str(path)).major, (path / "postgres").read_bytes()[-3:]) for path in programs] == [
        (17, b"one"),
        (17, b"two"),
    ]
    record = record_beside(programs[0])
    assert record is not None
    assert record.facts["source"] == f"git:{servers.path}@{servers.git('rev-parse', 'one')}"
    assert (record.facts["source_subject"], record.facts["build_system"]) == ("one", "configure")
    assert record.steps == 3
    assert any("67% of about 3 steps, about" in text for text in said)
    assert not (programs[0].parent.parent / "work").exists()
    # those that are there are not built again
    assert built(spec, builds, run_directory, _unheard) == with_builds


def test_options_and_compilers_have_builds_of_their_own(home, builds, servers, run_directory):
    arms = {"a": {"postgres": "git:postgres@one"}, "b": {"postgres": "git:postgres@one", "build": "--without-readline"}}
    arms["c"] = {"postgres": "git:postgres@one", "compiler": "gcc"}
    spec = built(study(home, arms), builds, run_directory, lambda text: None)
    programs = [spec.resolved(arm).postgres for arm in spec.arms]
    assert len(set(programs)) == 3
    records = [record_beside(Path(path)) for path in programs]
    assert [record.facts["build_options"] for record in records] == [[], ["--without-readline"], []]
    assert records[2].facts["compiler"].startswith("gcc")


@pytest.fixture(scope="module")
def patches(home, servers):
    """Writes two patches of the commit `one`, the second of which needs the first: a mail, and a plain difference."""
    folder = home / "patches"
    folder.mkdir()
    servers.git("checkout", "--quiet", "-b", "patched", "one")
    servers.commit("Skip empty pages", {"src/mark": "first"})
    mail = servers.git("format-patch", "-1", "--stdout", "--subject-prefix=PATCH v3 1/2")
    (folder / "0001.patch").write_text(f"{mail}\n")
    (servers.path / "src/mark").write_text("second")
    (folder / "0002.diff").write_text(servers.git("diff") + "\n")
    servers.git("checkout", "--quiet", "--force", "main")
    return folder


def test_patches_are_applied_in_their_order_and_kept_in_the_study(home, builds, patches, run_directory):
    arms = {
        "master": {},
        "1": {"patches": "patches/0001.patch"},
        "2": {"patches": ["patches/0001.patch", "patches/0002.diff"]},
    }
    spec = thaw(freeze(study(home, arms, postgres="git:postgres@one")))
    aside = patches.rename(home / "moved")
    try:
        with_builds = built(spec, builds, run_directory, lambda text: None)
    finally:
        aside.rename(patches)
    programs = [Path(with_builds.resolved(arm).postgres) for arm in arms]
    assert [(path / "postgres").read_bytes()[-3:] for path in programs] == [b"one", b"rst", b"ond"]
    records = [record_beside(path) for path in programs]
    titles = [[text.partition(" (")[0] for text in record.facts.get("patches", [])] for record in records]
    assert titles == [[], ["Skip empty pages"], ["Skip empty pages", "src/mark"]]
    assert "postgres@" in records[2].label
    assert records[2].label.endswith("with Skip empty pages and src/mark")


def test_patches_apply_within_the_work_tree_of_another_repository(tmp_path, patches, run_directory):
    Repository(tmp_path / "dotfiles")
    store = Builds(tmp_path / "dotfiles" / "state")
    spec = study(patches.parent, {"a": {"postgres": "git:postgres@one", "patches": "patches/0001.patch"}, "b": {}})
    try:
        program = Path(built(spec, store, run_directory, lambda text: None).resolved("a").postgres) / "postgres"
        assert program.read_bytes().endswith(b"first")
    finally:
        store.close()


def test_a_patch_that_does_not_apply_is_named_and_nothing_is_kept(home, builds, patches, run_directory):
    before = {kept.name for kept in builds.kept()}
    spec = study(home, {"a": {"postgres": "git:postgres@one", "patches": "patches/0002.diff"}, "b": {}})
    words = r"arms.a: the patch .src/mark. does not apply to postgres@\w{10}: patch failed: src/mark:1; make the patch"
    with pytest.raises(StudyError, match=words):
        built(spec, builds, run_directory, lambda text: None)
    assert {kept.name for kept in builds.kept()} == before
    assert builds.unfinished() == []


def test_a_patch_cannot_write_outside_of_the_source(home, builds, servers, run_directory):
    del servers
    outside = home / "outside"
    text = "--- a/src/mark\n+++ b/../../../../outside\n@@ -0,0 +1 @@\n+x\n".replace("a/src/mark", "/dev/null")
    (home / "escape.patch").write_text(text)
    spec = study(home, {"a": {"postgres": "git:postgres@one", "patches": "escape.patch"}, "b": {}})
    with pytest.raises(StudyError, match="does not apply to"):
        built(spec, builds, run_directory, lambda text: None)
    assert not outside.exists()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"postgres": "git:postgres@broken"},
            r"the build of .* failed: src/three.c:\d+:\d+: error: expected expression",
        ),
        ({"postgres": "git:postgres@one", "build": "--fail"}, "readline library not found; install libreadline-dev"),
        ({"postgres": "git:postgres@one", "compiler": "no-such-cc"}, "there is no C compiler no-such-cc"),
        ({"postgres": "git:postgres@one", "build": ["-Dcassert=true"]}, "has no meson.build"),
        ({"postgres": "git:postgres@one", "build": ["-Da=b", "--x"]}, "an option of meson .* and one of configure"),
        ({"postgres": "git:extension@quick"}, "has neither meson.build nor configure"),
        (
            {"postgres": "17", "extensions": "git:extension@quick"},
            "which has no headers; install postgresql-server-dev",
        ),
        ({"postgres": "18", "extensions": "git:postgres@nothing"}, "has neither a Makefile"),
    ],
)
@pytest.mark.usefixtures("servers", "extension")
def test_what_does_not_build_is_said_in_one_sentence(home, builds, keys, words, run_directory):
    require_server(18)
    before = {kept.name for kept in builds.kept()}
    with pytest.raises(StudyError, match=rf"^arms.a: .*{words}") as failed:
        built(study(home, {"a": keys, "b": {}}), builds, run_directory, lambda text: None)
    assert "\n" not in str(failed.value)
    assert {kept.name for kept in builds.kept()} == before
    assert builds.unfinished() == []
    if "the whole output is in" in str(failed.value):
        assert Path(str(failed.value).rpartition(" ")[2]).read_text().startswith("$ ./configure --prefix=")


MESON = """#!/bin/sh
# of meson what a build of a server calls: setup with --prefix and CC, install
case $1 in
setup)
    for word; do
        case $word in --prefix=*) prefix=${word#--prefix=} ;; esac
        objects=$last last=$word
    done
    mkdir -p "$objects"
    {
        printf 'rule compile\\n  command = %s -c $in -o $out\\n  description = $out\\n' "$CC"
        printf 'rule link\\n  command = %s -r $in -o $out\\n  description = $out\\n' "$CC"
        for name in one two; do printf 'build %s.o: compile %s/src/%s.c\\n' $name "$last" $name; done
        echo 'build src/backend/postgres: link one.o two.o'
    } > "$objects/build.ninja"
    echo "$prefix" > "$objects/prefix"
    echo "$last" > "$objects/source"
    echo "$*" > "$objects/options"
    ;;
install)
    case $* in *--only-changed*) exec cp src/backend/postgres "$(cat prefix)/bin" ;; esac
    for word; do objects=$word; done
    mkdir -p "$(cat "$objects/prefix")"
    cp -R INSTALLED/bin INSTALLED/lib INSTALLED/share "$objects/options" "$(cat "$objects/prefix")"
    ;;
esac
"""


@pytest.fixture
def meson(tmp_path, monkeypatch):
    """Puts a stand-in for meson on the PATH; ninja is the real one."""
    require(shutil.which("ninja"), "ninja")
    program = tmp_path / "bin" / "meson"
    program.parent.mkdir()
    program.write_text(MESON.replace("INSTALLED", str(require_server(17).bin.parent)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("meson")
def test_a_source_with_meson_build_is_built_by_meson_where_it_is_installed(home, builds, run_directory):
    repository = Repository(home / "by-meson")
    files = server_files(require_server(17).bin.parent)
    repository.commit("both", {**files, "meson.build": "project('x')\n"})
    said = []
    arms = {
        "a": {"postgres": "git:by-meson@HEAD", "build": "-Dcassert=false", "lto": True},
        "b": {"postgres": "git:by-meson@HEAD", "build": "--without-readline"},
    }
    spec = built(study(home, arms), builds, run_directory, said.append)
    meson, configure = (record_beside(Path(spec.resolved(arm).postgres)) for arm in ("a", "b"))
    assert (meson.facts["build_system"], meson.facts["lto"], meson.steps) == ("meson", True, 3)
    options = (Path(spec.resolved("a").postgres).parent / "options").read_text().split()
    assert options[:1] + options[2:4] == ["setup", "-Db_lto=true", "-Dcassert=false"]
    assert any("67% of about 3 steps" in text for text in said)
    # options of configure choose configure
    assert configure.facts["build_system"] == "configure"


@pytest.mark.usefixtures("meson", "servers")
def test_layouts_by_meson_are_linked_by_the_command_that_ninja_has(home, builds, run_directory):
    repository = Repository(home / "layouts-by-meson")
    repository.commit("meson", {**server_files(require_server(17).bin.parent), "meson.build": "project('x')\n"})
    keys = {"postgres": "git:layouts-by-meson@HEAD", "build": "-Dcassert=false", "layouts": 5}
    spec = built(
        study(home, {"a": keys, "b": {"postgres": "git:postgres@one"}}), builds, run_directory, lambda text: None
    )
    programs = Path(spec.resolved("a").postgres)
    require(shutil.which("nm"), "nm")
    orders = set()
    for layout in range(1, 6):
        linked = programs.parent / "layouts" / str(layout) / "bin" / "postgres"
        printed = subprocess.run(["nm", "-n", linked], check=True, capture_output=True, text=True).stdout
        orders.add(tuple(line.split()[-1] for line in printed.splitlines()))
    assert orders == {("one", "two"), ("two", "one")}
    # the program as it was built is the one of the installation
    assert resolve(str(programs)).major == 17


@pytest.mark.usefixtures("servers")
def test_link_time_optimisation_by_configure_has_its_flags_and_the_compilers_archiver(home, builds, run_directory):
    keys = {"postgres": "git:postgres@one", "compiler": "gcc", "build": "CFLAGS=-O1", "lto": True}
    spec = built(study(home, {"a": keys, "b": {}}), builds, run_directory, lambda text: None)
    programs = Path(spec.resolved("a").postgres)
    record = record_beside(programs)
    assert (record.facts["lto"], record.facts["build_options"]) == (True, ["CFLAGS=-O1"])
    options = (programs.parent / "options").read_text().splitlines()
    assert options[1:] == ["CC=gcc", "CFLAGS=-O1 -flto=auto", "AR=gcc-ar"]


@pytest.fixture(scope="module")
def profiled(home):
    """Returns the repository of a server whose compiler fails if the profile of the server's main file is missing."""
    repository = Repository(home / "profiled")
    repository.commit("one", linked_server_files(require_server(17).bin.parent, "-Werror=missing-profile"))
    return repository


@pytest.mark.server
@pytest.mark.usefixtures("profiled")
def test_a_server_with_a_profile_is_built_twice_and_serves_a_load_between(home, workspace):
    keys = {"postgres": "git:profiled@HEAD", "compiler": "gcc", "pgo": True}
    said = []
    spec = built(study(home, {"a": keys, "b": {"setup_sql": "SELECT 1"}}), workspace.builds, workspace, said.append)
    programs = Path(spec.resolved("a").postgres)
    record = record_beside(programs)
    assert record.facts["pgo"] is True
    counting, using = (programs.parent / "flags").read_text().splitlines()
    directory = counting.removeprefix("-fprofile-generate=")
    assert using.split()[0] == f"-fprofile-use={directory}"
    assert not Path(directory).exists()
    assert [text.partition("profiled@")[2][12:] for text in said if "profile" in text.partition(": ")[2]] == [
        "loading pgbench's tables for its profile",
        "counting which code tpcb-like executes, for its profile",
        "counting which code simple-update executes, for its profile",
        "counting which code select-only executes, for its profile",
    ]
    assert resolve(str(programs)).major == 17


@pytest.mark.server
@pytest.mark.usefixtures("servers")
def test_a_server_that_counts_nothing_has_no_profile(home, workspace):
    keys = {"postgres": "git:postgres@one", "pgo": True}
    with pytest.raises(
        BuildError, match=r"^arms.a: the instrumented server has written no counters for pgo; leave pgo out"
    ):
        built(study(home, {"a": keys, "b": {}}), workspace.builds, workspace, lambda text: None)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd"), lambda path: path.mkdir()])
def test_counters_are_files_alone(tmp_path, make):
    profile = Profile(tmp_path, clang=False)
    (tmp_path / "a.gcda").write_text("")
    assert profile.counters(None) == [tmp_path / "a.gcda"]
    make(tmp_path / "b.gcda")
    with pytest.raises(
        BuildError, match="has entries that are not regular files, which the servers' account has put there"
    ):
        profile.counters(None)


def test_two_versions_of_an_extension_are_two_copies_of_the_server(home, builds, extension, run_directory):
    installed = require_server(18)
    before = sorted(path.name for path in installed.bin.parent.rglob("busy*"))
    arms = {"a": {"setup_sql": "SELECT 1"}, "b": {"extensions": "git:extension@slow"}}
    spec = built(
        study(home, arms, extensions="git:extension@quick", setup_sql="SELECT 0"),
        builds,
        run_directory,
        lambda text: None,
    )
    creation = 'CREATE EXTENSION IF NOT EXISTS "busy" CASCADE'
    assert [spec.resolved(arm).setup_sql for arm in ("a", "b")] == [
        [creation, "SELECT 0", "SELECT 1"],
        [creation, "SELECT 0"],
    ]
    versions = []
    for arm in ("a", "b"):
        server = resolve(spec.resolved(arm).postgres)
        assert server.version == installed.version
        versions += [path.name for path in server.bin.parent.rglob("busy--*.sql")]
    assert versions == ["busy--1.0.sql", "busy--2.0.sql"]
    assert sorted(path.name for path in installed.bin.parent.rglob("busy*")) == before == []


CARGO_PGRX = """#!/bin/sh
# of cargo-pgrx what a build calls; it wants the configuration that `cargo pgrx init` leaves
[ "$1 $2 $3 $4" = "pgrx install --release --pg-config" ] || exit 1
if ! grep -qx "pg18 = \\"$5\\"" "$PGRX_HOME/config.toml"; then
    printf 'Error: \n   0: %s/config.toml not found.  Have you run cargo pgrx init yet?\n' "$PGRX_HOME"
    exit 1
fi
cp greeting* "$("$5" --sharedir)/extension"
"""


def test_an_extension_by_pgrx_needs_no_initialisation_by_the_user(home, builds, run_directory, tmp_path, monkeypatch):
    require_server(18)
    require(shutil.which("cargo"), "cargo")
    program = tmp_path / "bin" / "cargo-pgrx"
    program.parent.mkdir()
    program.write_text(CARGO_PGRX)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PGRX_HOME", str(tmp_path / "nowhere"))
    repository = Repository(home / "greeting")
    control = "default_version = '1.0'\n"
    repository.commit("one", {"Cargo.toml": "", "greeting.control": control, "greeting--1.0.sql": "SELECT 1;"})
    arms = {"a": {"extensions": "git:greeting@HEAD"}, "b": {}}
    spec = built(study(home, arms), builds, run_directory, lambda text: None)
    assert spec.resolved("a").setup_sql == ['CREATE EXTENSION IF NOT EXISTS "greeting" CASCADE']


def test_of_two_labs_one_builds_and_the_other_waits(home, servers, run_directory):
    first, second = Builds(home / "shared"), Builds(home / "shared")
    spec = study(home, {"a": {"postgres": "git:postgres@one"}, "b": {}})
    begun, said = threading.Event(), []
    waiting = threading.Thread(target=lambda: (begun.wait(), built(spec, second, run_directory, said.append)))
    waiting.start()
    built(spec, first, run_directory, lambda text: begun.set())
    waiting.join()
    assert {tuple(text.split()[:2]) for text in said} <= {("waiting", "for")}
    [kept] = first.kept()
    with pytest.raises(BuildInUse, match="in use by a running pgtrial"):
        Builds(home / "shared").remove(kept.name)
    first.close()
    second.close()
    first.remove(kept.name)
    assert first.kept() == []


def test_a_build_that_was_killed_is_removed_and_made_anew(home, servers, run_directory):
    store = Builds(home / "killed")
    spec = study(home, {"a": {"postgres": "git:postgres@one"}, "b": {}})
    program = (
        "import os, sys; from pathlib import Path; from pgtrial.servers.builds.kept import Builds;"
        "from pgtrial.servers.builds.of_study import built; from pgtrial.store.study_file import build_study;"
        "spec = build_study({'arms': {'a': {'postgres': 'git:postgres@one'}, 'b': {}}}, 'test', Path(sys.argv[1]));"
        "built(spec, Builds(Path(sys.argv[2])), None, lambda text: '%' in text and os.kill(os.getpid(), 9))"
    )
    subprocess.run([sys.executable, "-c", program, home, store.root], check=False, env=os.environ)
    assert [path.name.startswith("pg-") for path in store.unfinished()] == [True]
    built(spec, store, run_directory, lambda text: None)
    assert store.unfinished() == []
    assert len(store.kept()) == 1
    store.close()


@pytest.mark.usefixtures("servers")
def test_builds_are_listed_and_removed(home, fresh_state, monkeypatch, capsys, run_directory):
    monkeypatch.setenv("PGTRIAL_STATE", str(fresh_state))
    store = Builds(fresh_state / "builds")
    built(study(home, {"a": {"postgres": "git:postgres@one"}, "b": {}}), store, run_directory, lambda text: None)
    with pytest.raises(BuildError):
        built(study(home, {"a": {"postgres": "git:postgres@broken"}, "b": {}}), store, run_directory, lambda text: None)
    [kept] = store.kept()
    list_command(as_json=True)
    [listed] = json.loads(capsys.readouterr().out)["builds"]
    assert (listed["name"], listed["in_use"]) == (kept.name, True)
    assert cleanup_command(build=[kept.name]) == 3
    assert "in use by a running pgtrial" in capsys.readouterr().err
    store.close()
    assert cleanup_command(unused="30d") == 0
    assert cleanup_command(builds=True) == 0
    assert f"Removed the build {store.root / kept.name}, postgres@" in capsys.readouterr().out
    assert list(store.root.iterdir()) == []


def test_the_environment_changes_no_build(home, tmp_path, monkeypatch):
    for name in ("CFLAGS", "CC", "MAKEFLAGS", "PG_CONFIG"):
        monkeypatch.setenv(name, "changed")
    Commands("x", tmp_path / "log", _unheard).run(["sh", "-c", 'test -z "$CFLAGS$CC$MAKEFLAGS$PG_CONFIG"'], tmp_path)
    with pytest.raises(BuildError, match="the build of x failed: false ended with status 1; the whole output is in"):
        Commands("x", tmp_path / "log", _unheard).run(["false"], tmp_path)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["checking for bison... no", "configure: error: bison not found"], "bison not found; install bison"),
        (["a.c:1: warning: x", "a.c:2: error: y.", "make: *** [a.o] Error 1"], "a.c:2: error: y"),
        (['meson.build:1:0: ERROR: Dependency "icu-uc" not found'], 'install libicu-dev (libicu-devel), or add "--'),
        (["last line", "make[1]: *** [all] Error 2", "make: *** [all] Error 2"], "last line"),
        (["a.c:1:10: fatal error: postgres.h: No such file or directory"], "install the headers of this server"),
        ([], ""),
        (
            ["/usr/bin/ld: cannot find /x/libclang_rt.profile-x86_64.a: No such file or directory"],
            "; install libclang-rt",
        ),
        (
            [
                "Error: ",
                "   0: \x1b[33m/x/config.toml\x1b[39m not found",
                "Location:",
                "   lib.rs:584",
                "Run with RUST_X",
            ],
            "/x/config.toml not found",
        ),
    ],
)
def test_the_last_words_are_those_of_the_compiler_with_what_to_install(lines, words):
    assert words in last_words(lines)
