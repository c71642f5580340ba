"""Handles the signals that end the lab (SIGINT, SIGTERM, SIGHUP). The first signal stops the work in an orderly way,
and later signals do not disturb the stopping."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """Raised when SIGINT, SIGTERM or SIGHUP has arrived. `exit_status` is the status that a shell reports for this
    signal: 128 plus the signal's number."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


@dataclass
class _Holding:
    """The state of `held_off` in the main thread, where Python handles signals: how deeply its blocks are nested, and
    the signal that arrived inside."""

    depth: int = 0
    arrived: int | None = None


_holding = _Holding()


@contextmanager
def held_off() -> Iterator[None]:
    """Postpones signals: a signal that arrives within the context is raised as Interrupted when the outermost context
    of this kind ends.

    The lab starts processes and threads within this context. Starting takes a while on a busy machine, and pgtrial
    cannot end a process or thread that is only half started.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _holding.depth += 1
    try:
        yield
    finally:
        _holding.depth -= 1
        number = _holding.arrived
        if number is not None and not _holding.depth:
            _holding.arrived = None
            raise Interrupted(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted in the main thread for the first SIGINT, SIGTERM or SIGHUP that arrives within the context;
    later signals are ignored.

    A signal that the process ignored before stays ignored: SIGHUP under nohup, and SIGINT if a script has started
    pgtrial in the background.
    """
    every = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    numbers = [number for number in every if signal.getsignal(number) is not signal.SIG_IGN]

    def stop(number: int, frame: FrameType | None) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        if not _holding.depth:
            raise Interrupted(number)
        _holding.arrived = number

    previous = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
