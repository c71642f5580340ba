"""The scripts by which shells complete `pgtrial` (those of Typer) and `pgtrial-engine` (made of its manual)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from distribution.engine_manual import EngineManual, FrontEnd, Option, engine_manual
from distribution.running import run

_BASH = "bash-completion/completions/{name}"
_ZSH = "zsh/{zsh}/_{name}"
_FISH = "fish/vendor_completions.d/{name}.fish"
_PLACES = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_PRINT = "from pgtrial.cli import main; main([])"


def completions(engine: Path, *, zsh: str = "site-functions") -> dict[str, bytes]:
    """Returns each script by its path below a `share` directory. `zsh` is the directory of functions that zsh reads."""
    lab = {
        place.format(name="pgtrial", zsh=zsh): run(
            [sys.executable, "-c", _PRINT], env={"_PGTRIAL_COMPLETE": f"source_{shell}"}
        ).encode()
        for shell, place in _PLACES.items()
    }
    manual = engine_manual(engine)
    of_shell = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    engines = {
        place.format(name=manual.name, zsh=zsh): of_shell[shell](manual).encode() for shell, place in _PLACES.items()
    }
    return {**lab, **engines}


def _words(front_end: FrontEnd) -> Iterator[str]:
    """Yields the options of a front end as they are typed in; one that takes a value ends with an equals sign."""
    for option in front_end.options:
        if option.short:
            yield f"-{option.short}"
        yield f"--{option.long}" + ("=" if option.argument and not option.argument_is_optional else "")


def _bash(manual: EngineManual) -> str:
    names = " ".join(front_end.name for front_end in manual.front_ends)
    cases = "\n".join(
        f"        {front_end.name}) words={_quoted(' '.join(dict.fromkeys(_words(front_end))))} ;;"
        for front_end in manual.front_ends
    )
    return f"""\
# bash completion of {manual.name}
_pgtrial_engine() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
        return
    fi
    case "$current" in -*) ;; *) return ;; esac
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ ${{COMPREPLY[0]-}} == *= ]]; then compopt -o nospace; fi
}}
complete -o default -F _pgtrial_engine {manual.name}
"""


def _zsh(manual: EngineManual) -> str:
    names = " ".join(_quoted(f"{front_end.name}:{front_end.summary}") for front_end in manual.front_ends)
    cases = "\n".join(
        f"    {front_end.name}) options=({' '.join(_zsh_options(front_end))}) ;;" for front_end in manual.front_ends
    )
    return f"""\
#compdef {manual.name}
local -a front_ends options
if (( CURRENT == 2 )); then
    front_ends=({names})
    _describe 'front end' front_ends
    return
fi
case $words[2] in
{cases}
esac
shift words
(( CURRENT-- ))
_arguments $options '*:file:_files'
"""


def _zsh_options(front_end: FrontEnd) -> Iterator[str]:
    told = set()
    for option in front_end.options:
        if option.long in told:
            continue  # an option of both modes of pgbench is listed twice
        told.add(option.long)
        about = _summary(option).replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        value = ":value:_files" if option.argument and not option.argument_is_optional else ""
        if option.short:
            yield _quoted(f"-{option.short}[{about}]{value}")
        yield _quoted(f"--{option.long}{'=' if value else ''}[{about}]{value}")


def _fish(manual: EngineManual) -> str:
    command = f"complete -c {manual.name}"
    lines = [f"# fish completion of {manual.name}"]
    for front_end in manual.front_ends:
        lines.append(f"{command} -n __fish_use_subcommand -a {front_end.name} -d {_fish_quoted(front_end.summary)}")
    for front_end in manual.front_ends:
        for option in front_end.options:
            short = f" -s {_fish_quoted(option.short)}" if option.short else ""
            value = " -r" if option.argument and not option.argument_is_optional else ""
            condition = _fish_quoted(f"__fish_seen_subcommand_from {front_end.name}")
            lines.append(f"{command} -n {condition}{short} -l {option.long}{value} -d {_fish_quoted(_summary(option))}")
    return "\n".join(lines) + "\n"


def _summary(option: Option) -> str:
    """Returns the help of an option, in one line."""
    return " ".join(option.help.split())


def _quoted(words: str) -> str:
    """Returns the text as one word of a POSIX shell."""
    return "'" + words.replace("'", "'\\''") + "'"


def _fish_quoted(words: str) -> str:
    """Returns the text as one word of fish, in which backslashes count within single quotes."""
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
