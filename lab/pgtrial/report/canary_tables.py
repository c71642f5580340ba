"""Tables of the section on canaries: the disturbed blocks, and every canary."""

from __future__ import annotations

from pgtrial.model.records.study import Canary
from pgtrial.model.units import percent
from pgtrial.report.data import StudyData
from pgtrial.report.tables import NONE, Table
from pgtrial.statistics.canaries import CAP, DEVIATIONS, FLOOR


def canary_tables(data: StudyData) -> list[Table]:
    """Both; without rows for a study without canaries."""
    return [_disturbed(data), _all(data)]


def _disturbed(data: StudyData) -> Table:
    result = data.result
    found = [("set aside and run again", each) for each in result.voids]
    found += [("kept, no more may be voided", each) for each in result.noisy_blocks]
    rows = [
        [
            str(each.block + 1),
            str(each.attempt),
            effect,
            each.reason,
            ", ".join(f"{arm}: {number}" for arm, number in each.failed.items()) or NONE,
        ]
        for effect, each in sorted(found, key=lambda pair: (pair[1].block, pair[1].attempt))
    ]
    caption = (
        f"Blocks before or after which a canary was more than {DEVIATIONS:.0f} scaled median absolute deviations, and "
        f"more than a factor of {1 + FLOOR:.2f}, from the median until then. The rule sees canaries only, and voids at "
        f"most {percent(CAP)} of the planned blocks. Trials of voided blocks are kept in voided/, and count nowhere."
    )
    return Table(caption, ["block", "attempt", "effect", "reason", "failed trials"], rows, frozenset({0, 1}))


def _all(data: StudyData) -> Table:
    rows = [
        [
            str(canary.number + 1),
            _position(canary),
            _number(canary.reading.cpu_per_s),
            _number(canary.reading.flushes_per_s),
            _number(canary.reading.select1_per_s),
            _number(canary.reading.mhz),
            percent(canary.reading.steal_share) if canary.reading.steal_share is not None else NONE,
            ", ".join(f"{name} {percent(share)}" for name, share in canary.reading.pressure.items()) or NONE,
            canary.reading.taken.replace("T", " ")[:19],
        ]
        for canary in data.canaries
    ]
    caption = (
        "Every canary: hashing on all CPUs, flushes of 8 kB, one client of the engine against its null server. Stolen "
        "CPU time and the share of time for which some process (memory_full: every one) waited are those since the "
        "canary before; they are not judged."
    )
    heads = ["canary", "taken", "MiB hashed/s", "flushes/s", "SELECT 1/s", "MHz", "stolen", "waiting", "at (UTC)"]
    return Table(caption, heads, rows, frozenset({0, 2, 3, 4, 5, 6}))


def _position(canary: Canary) -> str:
    if canary.judged is not None:
        return f"after block {canary.judged.block + 1}"
    return "reference" if canary.role == "reference" else f"before block {(canary.next_block or 0) + 1}"


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None else NONE
