"""The tables of a sysbench test made by all machines of a fleet at once: each makes some of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pgtrial.engine import prepare_command
from pgtrial.errors import ArmError
from pgtrial.fleet.members import ANSWER_S, MachineLost, Member
from pgtrial.fleet.packing import Packed, pack
from pgtrial.fleet.run import words_of

_LINES_S = 2.0
_END_S = 5.0
_FOR_EACH_THREAD = "bulk_insert"
"""The test that has a table for each thread; of others the threads are connections over which tables are made."""


def prepare_shared(
    members: Sequence[Member],
    env: Mapping[str, str],
    test: str,
    options: Sequence[str],
    on_line: Callable[[str], None] | None,
) -> None:
    """As pgtrial.engine.prepare_sysbench for one of sysbench's own tests, by so many machines. Raises ArmError."""
    if test != _FOR_EACH_THREAD:
        options = [_more_threads(option, len(members)) for option in options]
    packed = pack(prepare_command(env, test, options), dict(env), None)
    one_at_a_time = threading.Lock()
    failed = threading.Event()

    def hear(line: str) -> None:
        if on_line is not None:
            with one_at_a_time:
                on_line(line)

    def work(index: int) -> str | None:
        complaint = _part(members[index], packed, f"{index + 1}/{len(members)}", hear, failed)
        if complaint is not None:
            failed.set()
        return complaint

    with ThreadPoolExecutor(len(members)) as workers:
        complaints = list(workers.map(work, range(len(members))))
    for member, complaint in zip(members, complaints, strict=True):
        if complaint:
            raise ArmError(f"preparing the tables of {test} failed on the machine {member.name}: {complaint}")


def _more_threads(option: str, times: int) -> str:
    name, _, value = option.partition("=")
    return f"{name}={int(value) * times}" if name == "--threads" else option


def _part(
    member: Member, packed: Packed, shard: str, hear: Callable[[str], None], failed: threading.Event
) -> str | None:
    """Have one machine make its tables; what is wrong with that, or None."""
    try:
        complaint = member.ask("begin", packed.order(f"--shard={shard}"))
        if complaint is not None:
            return str(complaint)
        said, last = "", False
        while not last:
            lines, last = member.ask("lines", _LINES_S, patience_s=_LINES_S + ANSWER_S)
            for line in lines:
                said = line.strip() or said
                hear(line.strip())
            if failed.is_set():
                member.call("interrupt")
        ended = member.ask("end", _END_S, patience_s=_END_S + ANSWER_S)
    except MachineLost as lost:
        return f"the machine was lost: {lost}"
    if ended["status"] == 0 or failed.is_set():
        return None
    return words_of(ended) if ended["messages"] else said
