"""Messages for a study that was made by options: they name these in place of the keys of a study file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace

from pgtrial.conduct.progress import Listener, Preparing, ProgressEvent

Reword = Callable[[str], str]
"""A message, as the user of a command understands it."""

_SEVERAL = r"(?:, (?:and |or )?| and | or )"


def by_options(keys: Collection[str], flags: Collection[str] = ()) -> Reword:
    """Rewording for a command with options for these keys of [load], its suites and jobs, and [verdict]; flags take no
    value.
    """
    key = "(?:" + "|".join((*keys, *flags)) + r")\b"
    section = r"\[(?:load(?:\.suite|\.job)?|verdict)\] (?:(?:suite|job)\.)?"
    single = re.compile(rf'{section}({key}) = "?([^"\s;,]+)"?')
    listed = re.compile(rf"{section}{key}(?:{_SEVERAL}{key})*")

    def with_value(match: re.Match[str]) -> str:
        option = _option(match[1])
        return option if match[1] in flags else f"{option} {match[2]}"

    def reword(message: str) -> str:
        text = single.sub(with_value, message)
        text = listed.sub(
            lambda match: re.sub(key, lambda name: _option(name[0]), re.sub(rf"^{section}", "", match[0])), text
        )
        return _TWICE.sub(r"\1\2", _ARM.sub(r"\1: ", _SHARED.sub("by --server", text)))

    return reword


_TWICE = re.compile(r"(--[\w-]+)( [A-Z.=]+)? \(\1\)")
"""An option that the message has named itself: `--data (--data)`."""

_ARM = re.compile(r"\[arms\.([^\]]+)\] ")
_SHARED = re.compile(r"\bin \[server\]")


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def reworded(listener: Listener, reword: Reword) -> Listener:
    """A listener that is told of steps in these words."""

    def hear(event: ProgressEvent) -> None:
        listener(replace(event, text=reword(event.text)) if isinstance(event, Preparing) else event)

    return hear
