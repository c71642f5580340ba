"""Sources as a study file writes them: what is read, and what is refused before git sees it."""

import pytest

from pgtrial.model.errors import StudyError
from pgtrial.model.study.effects import effects_of
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.patches import Patch
from pgtrial.model.study.sources import DirectorySource, GitSource, source_of
from pgtrial.store.study_file import build_study

COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("git:/src/postgres@REL_17_STABLE", GitSource("/src/postgres", "REL_17_STABLE")),
        ("git:/src/a@b/postgres@master~3", GitSource("/src/a@b/postgres", "master~3")),
        ("git:.@HEAD@{1}", GitSource(".", "HEAD@{1}")),
        ("git:git@github.com:postgres/postgres.git@v1", GitSource("git@github.com:postgres/postgres.git", "v1")),
        ("git:ssh://git@host/x.git@v1", GitSource("ssh://git@host/x.git", "v1")),
        ("source:../postgres", DirectorySource("../postgres")),
        ("source:/a@b@sha256:0123456789abcdef", DirectorySource("/a@b", "0123456789abcdef")),
    ],
)
def test_a_source_is_read_and_written_alike(text, source):
    assert source_of(text) == source
    assert source.text == text


@pytest.mark.parametrize(
    ("repository", "remote"),
    [
        ("https://git.postgresql.org/git/postgresql.git", True),
        ("git@github.com:postgres/postgres", True),
        ("host:path", True),
        ("/src/postgres", False),
        ("./with:colon", False),
        ("C:/", False),
    ],
)
def test_a_repository_is_elsewhere_if_it_is_a_url_or_an_address_of_ssh(repository, remote):
    assert GitSource(repository, "x").is_remote is remote


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("git:/src/postgres", "names no commit"),
        ("git:@master", "names no commit"),
        ("git:ext::sh -c id@master", "a transport of git that runs a command"),
        ("git:--upload-pack=x@master", "git would take for an option"),
        ("git:/src@--output=x", "git would take for an option"),
        ("git:https://me:secret@host/x@master", "a login in its URL"),
        ("git:https://secret@host/x@master", "a login in its URL"),
        ("git:ssh://git:secret@host/x@master", "a login in its URL"),
        ("git:ftp://host/x@master", "a URL of ftp"),
        ("source:", "names no directory"),
    ],
)
def test_what_git_is_not_to_see_is_refused_without_its_words(text, words):
    with pytest.raises(StudyError, match=words) as refused:
        build_study({"arms": {"a": {"postgres": text}, "b": {}}}, "test")
    assert "secret" not in str(refused.value)
    with pytest.raises(StudyError, match=words):
        build_study({"arms": {"a": {"extensions": text}, "b": {}}}, "test")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"build": ["-Dcassert=true"]}, "has build, which is for a server that is built from source"),
        ({"lto": True}, "has lto"),
        ({"patches": "x.patch"}, "has patches, which is for a server that is built from source"),
        ({"pgo": True}, "has pgo"),
        ({"layouts": 4}, "has layouts, which is for a server that is built from source"),
        ({"postgres": "git:/x@y", "layouts": 4, "lto": True}, "has layouts and optimisation at link time"),
        ({"postgres": "git:/x@y", "layouts": 4, "build": "CFLAGS=-O2 -flto=auto"}, "has layouts and optimisation"),
        ({"postgres": "git:/x@y", "layouts": 1}, "layouts"),
        ({"compiler": "clang"}, "neither its server nor an extension is built from source"),
        ({"extensions": "git:/x@y", "reset": "vacuum"}, "has extensions, which are created on a fresh copy"),
        ({"extensions": "busy"}, "an extension must be given as a source"),
        ({"ssh": "me@host", "data": "/d", "postgres": "git:/x@y"}, "builds for this machine only"),
        ({"dsn": "dbname=x", "extensions": ["git:/x@y"]}, "has extensions, and its server is a given one"),
    ],
)
def test_keys_of_builds_belong_to_what_is_built_here(keys, words, monkeypatch):
    monkeypatch.setattr("pgtrial.store.study_file.with_sources", lambda spec, folder, source: spec)
    with pytest.raises(StudyError, match=words):
        build_study({"arms": {"a": keys, "b": {}}}, "test")


def test_a_study_with_sources_is_frozen_and_read_back():
    source = f"git:/src/postgres@{COMMIT}"
    spec = thaw(_FROZEN.format(source=source))
    assert spec.resolved("b").extensions == [source]
    assert thaw(freeze(spec)) == spec


_FROZEN = """
[arms.a]
[arms.b]
extensions = ["{source}"]
compiler = "clang"
"""


_PATCH = """From 0123456789 Mon Sep 17 00:00:00 2001
From: A <a@example.org>
Subject: [HACKERS] [PATCH v3 1/2]
 Skip empty
\tpages

---
--- a/src/one.c
+++ b/src/one.c
@@ -1 +1 @@
-Subject: no
+Subject: not this
"""


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (_PATCH, "Skip empty pages"),
        (_PATCH[_PATCH.index("--- a") :], "src/one.c"),
        ("diff --git a/x b/x\nindex 1..2\nBinary files differ\n", "a patch"),
    ],
)
def test_a_patch_has_the_title_of_its_mail_or_of_its_first_file(text, title):
    assert Patch(text).title == title
    assert Patch(text).label == f"{title} (SHA-256 {Patch(text).digest})"
    assert Patch(text + "\n").digest != Patch(text).digest


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file .*x.patch; name a patch"),
        (b"no change\n", "is not a patch; write it with git format-patch, or git diff"),
        (b"--- a\xff\n", "is not UTF-8"),
        (b"--- a\0\n", "is not a patch"),
    ],
)
def test_a_file_that_is_no_patch_is_refused_when_the_study_is_planned(tmp_path, content, words):
    if content is not None:
        (tmp_path / "x.patch").write_bytes(content)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "configure").touch()
    keys = {"postgres": "source:src", "patches": "x.patch"}
    with pytest.raises(StudyError, match=rf"\[arms.a\] patches: .*{words}"):
        build_study({"arms": {"a": keys, "b": {}}}, "test", tmp_path)


def test_a_frozen_study_has_the_text_of_its_patches(tmp_path):
    text = _PATCH.replace("\n@@", "\r\n@@")
    (tmp_path / "x.patch").write_bytes(text.encode())
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "configure").touch()
    spec = build_study({"arms": {"a": {"postgres": "source:src", "patches": "x.patch"}, "b": {}}}, "test", tmp_path)
    assert thaw(freeze(spec)).arms["a"].patches == [text]
    (effect,) = [effect for effect in effects_of(spec) if "patch" in effect.text]
    assert effect.text.startswith("a: applies a patch to the source of the server: Skip empty pages (SHA-256 ")
