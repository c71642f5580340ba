"""Completions of the engine: bash completes by its script, and each script has every option."""

from __future__ import annotations

import subprocess

import pytest

from distribution.completion import completions
from distribution.engine_manual import engine_manual
from tests.conftest import require_engine


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    for place, script in completions(require_engine()).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(script)
    return folder


def completed(scripts, *words):
    """Returns the words that bash offers in place of the last word."""
    script = scripts / "bash-completion" / "completions" / "pgtrial-engine"
    typed = " ".join(f"'{word}'" for word in ("pgtrial-engine", *words))
    # Without a terminal there is no completion under way whose options could be changed.
    lines = f"source {script}; compopt() {{ :; }}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _pgtrial_engine"
    shown = f'{lines}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-uc", shown], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_front_ends_and_their_options(scripts):
    names = [front_end.name for front_end in engine_manual(require_engine()).front_ends]
    assert completed(scripts, "") == [*names, "--help", "--version"]
    assert completed(scripts, "re") == ["replay"]
    assert completed(scripts, "pgbench", "--sli") == ["--slice=", "--slice-of=", "--slice-seed="]
    assert completed(scripts, "sysbench", "--tab") == []
    assert completed(scripts, "sysbench", "--hist") == ["--histogram"]


def test_every_option_of_every_front_end_is_in_the_script_of_each_shell(scripts):
    texts = [
        (scripts / place).read_text()
        for place in (
            "bash-completion/completions/pgtrial-engine",
            "zsh/site-functions/_pgtrial-engine",
            "fish/vendor_completions.d/pgtrial-engine.fish",
        )
    ]
    for front_end in engine_manual(require_engine()).front_ends:
        for option in front_end.options:
            assert all(f"--{option.long}" in text for text in texts[:2]), option
            assert f" -l {option.long} " in texts[2], option
