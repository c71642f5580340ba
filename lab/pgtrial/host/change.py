"""A change of the host and its undo: what every kind of change has in common."""

from __future__ import annotations

import abc
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from pgtrial.errors import PgtrialError


class HostError(PgtrialError):
    """The host refused a change, or the way back."""


class Change(BaseModel, abc.ABC):
    """One change. Its fields are all that the undo needs, and are JSON.

    A kind of change is a subclass, which registers itself by its name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    kinds: ClassVar[dict[str, type[Change]]] = {}
    survives_reboot: ClassVar[bool] = False
    """Whether the change is still there after the machine was started anew: a file is, a mount is not."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Change.kinds[cls.__name__] = cls

    @abc.abstractmethod
    def make(self) -> None:
        """Make it. Raises HostError, and may leave a part of it behind for the undo."""

    @abc.abstractmethod
    def undo(self) -> None:
        """Put back what was. Right also where nothing or a part was made, and done twice. Raises HostError."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """What is changed, in a few words: `mount of ext4 at /x`."""


def run_tool(command: Sequence[str | Path]) -> str:
    """What a system tool prints. Raises HostError with its own words, or when it is not installed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise HostError(f"{words[0]} is not installed here; install the package that holds it") from None
    except OSError as error:
        raise HostError(f"{words[0]} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        reason = "; ".join(said[:3]) or f"it ended with status {done.returncode} and said nothing"
        raise HostError(f"`{shlex.join(words)}` failed: {reason}")
    return done.stdout
