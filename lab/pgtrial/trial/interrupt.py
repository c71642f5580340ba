"""Signals that end the lab: the first one stops the work in order, later ones do not disturb the stopping."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP arrived. `exit_status` is the shell's: 128 + the signal."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it, the first of the signals raises Interrupted in the main thread; the ones after it are ignored."""
    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(number)

    previous = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
