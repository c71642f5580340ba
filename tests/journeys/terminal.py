"""A person's terminal: a shell in a pseudo-terminal, and the screen that the person sees.

Commands are typed into it as a page shows them. The screen has what is left after a program has drawn, erased and drawn
again, and `history` has the lines that have scrolled out of the screen.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pyte

_PROMPT = "journey$ "
_COLUMNS, _LINES = 80, 24
_QUIET_S = 0.1
"""The time that one reading waits for more output, seconds."""
_READ_BYTES = 512
"""The most that one reading takes. A drawing of the display is longer, so that none is drawn over unseen, also when a
busy machine lets this process wait while several come.
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    command: str
    status: int
    text: str
    """The text that stayed on the screen or above it, in lines without padded ends; wrapped lines are not joined.
    """
    seconds: float

    @property
    def joined(self) -> str:
        """The text with single spaces and no line breaks, for what was wrapped between words."""
        return " ".join(self.text.split())

    def says(self, sentence: str) -> bool:
        """True if the terminal shows the sentence, wherever it was wrapped: a terminal wraps within words, too."""
        return "".join(sentence.split()) in "".join(self.text.split())


class Terminal:
    """A shell with a screen of its own."""

    def __init__(self, directory: Path, environment: Mapping[str, str], columns: int, lines: int) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=5000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)
        self._shell = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile"],
            cwd=str(directory),
            env={**environment, "PS1": _PROMPT, "TERM": "xterm-256color", "HISTFILE": "/dev/null"},
            dimensions=(lines, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=_QUIET_S,
        )
        self._shell.delaybeforesend = None
        self._wait(lambda: self.screen[-1:] == [_PROMPT.rstrip()], 30)

    @property
    def screen(self) -> list[str]:
        """The lines that are visible now, without the empty ones at the end."""
        lines = [line.rstrip() for line in self._screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def history(self) -> list[str]:
        """Returns all lines so far: those that have scrolled out of the screen, and those on it."""
        above = [
            "".join(line[place].data for place in range(self._screen.columns)) for line in self._screen.history.top
        ]
        return [line.rstrip() for line in above] + self.screen

    def type(self, text: str) -> None:
        """Types text as it is."""
        self._shell.send(text)

    def interrupt(self) -> None:
        """Presses Ctrl-C in the terminal."""
        self._shell.sendintr()

    def resize(self, columns: int, lines: int) -> None:
        """Changes the size of the window; the kernel tells the program by SIGWINCH."""
        self._screen.resize(lines, columns)
        self._shell.setwinsize(lines, columns)

    def run(self, command: str, limit_s: float = 600) -> Done:
        """Types a command, which may have several lines, and waits until the shell asks for the next one."""
        self.begin(command)
        return self.end(limit_s)

    def begin(self, command: str) -> None:
        """Types a command and does not wait for it."""
        self._screen.reset()
        self._screen.history.top.clear()
        self._command, self._began = command, time.monotonic()
        self.type(command.rstrip("\n") + "\n")

    def watch(self, seen: Callable[[list[str]], bool], limit_s: float = 120) -> None:
        """Waits until the screen shows something. Fails with the screen if it does not come."""
        self._wait(lambda: seen(self.screen), limit_s)

    def end(self, limit_s: float = 600) -> Done:
        """Waits for the end of the command that was typed last."""
        ended = re.compile(r"journey status (\d+)")
        self.type("echo journey status $?\n")  # the shell reads it when the command has ended
        self._wait(lambda: any(ended.fullmatch(line) for line in self.screen), limit_s)
        lines = self.history
        place = next(number for number, line in reversed(list(enumerate(lines))) if ended.fullmatch(line))
        match = ended.fullmatch(lines[place])
        assert match is not None
        text = "\n".join(line for line in lines[:place] if "echo journey status" not in line)
        return Done(self._command, int(match[1]), text, time.monotonic() - self._began)

    def _wait(self, happened: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError("the terminal does not show it:\n" + "\n".join(self.history[-60:]))
            try:
                self._stream.feed(self._shell.read_nonblocking(_READ_BYTES, timeout=_QUIET_S))
            except pexpect.TIMEOUT:
                continue

    def close(self) -> None:
        """Hangs up, as closing the window does."""
        self._shell.close(force=True)


@contextmanager
def terminal(
    directory: Path, environment: Mapping[str, str] | None = None, columns: int = _COLUMNS, lines: int = _LINES
) -> Iterator[Terminal]:
    """Opens a terminal in a directory, and closes it at the end."""
    opened = Terminal(directory, os.environ if environment is None else environment, columns, lines)
    try:
        yield opened
    finally:
        opened.close()
