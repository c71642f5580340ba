"""The event loop of all connections, in a thread of its own: the lab itself is no asynchronous program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as NotInTime
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")


def wait_for(work: Coroutine[Any, Any, Result], timeout_s: float | None = None) -> Result:
    """What the work gives, or raises. TimeoutError when it takes longer; it is cancelled then, as on an interrupt."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result(timeout_s)
    except NotInTime:
        if future.done():
            raise  # the work's own
        future.cancel()
        raise TimeoutError from None
    except BaseException:
        future.cancel()
        raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="pgtrial ssh", daemon=True).start()
    return loop
