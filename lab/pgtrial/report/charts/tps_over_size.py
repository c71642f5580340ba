"""tps over the size of the database, where a study has several scales; one chart per workload, clients and rate.

No average stands for the line: where the data outgrows a cache, the mean of both sides is the speed of neither.
"""

from __future__ import annotations

from typing import Any

from pgtrial.evidence.audit.cache import in_bytes
from pgtrial.loads.data.pgbench_tables import MB_PER_SCALE, PgbenchTables
from pgtrial.report.charts import Figure, chart
from pgtrial.report.charts.levels import Over, horizontal, lines, readings
from pgtrial.report.charts.parts import Canvas
from pgtrial.report.data import StudyData

_LABEL = "datum.value >= 1000 ? format(datum.value / 1000, '.3~g') + ' GB' : datum.value + ' MB'"

_NEAR = 3.0
"""A cache that is so many times smaller or larger than the data is left out; the sizes would shrink to a point."""


@chart("tps")
def size_charts(data: StudyData) -> list[Figure]:
    """The median trial of each arm over the size, every trial behind it, and shared_buffers where all have the same."""
    points = data.plan.load_points
    cells = dict.fromkeys((point.workload, point.clients, point.rate) for point in points)
    figures = []
    for workload, clients, rate in cells:
        inside = [i for i, p in enumerate(points) if (p.workload, p.clients, p.rate) == (workload, clients, rate)]
        given = f", {rate:,.10g}/s" if rate is not None else ""
        title = f"{workload}, {clients} client{'s' if clients != 1 else ''}{given}, over database size"
        figures += _figure(data, title, inside)
    return figures


def _figure(data: StudyData, title: str, inside: list[int]) -> list[Figure]:
    fillfactor = data.spec.load.fillfactor
    over = Over(
        f"database size ({MB_PER_SCALE} MB per scale unit)",
        lambda point: PgbenchTables(point.scale, fillfactor).mb,
        _words,
        _LABEL,
    )
    found = readings(data, inside, over)
    if len(found.places) < 2:
        return []
    canvas = Canvas()
    medians, dots = canvas.chart(found.levels), canvas.chart(found.trials)
    layers: list[Any] = lines(medians, dots, data.plan.arms, over, found.places)
    alt_text = f"Throughput in transactions per second, {title}: {found.told()}."
    cache = _shared_buffers(data)
    if cache is not None and found.places[0] / _NEAR <= cache["place"] <= found.places[-1] * _NEAR:
        # the words stand on the side where there is more room
        left = cache["place"] ** 2 < found.places[0] * found.places[-1]
        aside: dict[str, Any] = {"align": "left", "dx": 5} if left else {"align": "right", "dx": -5}
        mark = canvas.chart([cache]).encode(x=horizontal(over, found.places))
        words = mark.mark_text(color="--soft", baseline="top", dy=2, fontSize=11, **aside)
        layers = [
            mark.mark_rule(color="--soft", strokeDash=[4, 4]),
            words.encode(text="text:N", y={"value": 0}),
            *layers,
        ]
        alt_text += f" All arms have {cache['text']}."
    return [Figure(title, alt_text, canvas.finish(layers, 260, alt_text), "tps")]


def _words(megabytes: int) -> str:
    return f"{megabytes / 1000:.3g} GB" if megabytes >= 1000 else f"{megabytes} MB"


def _shared_buffers(data: StudyData) -> dict[str, Any] | None:
    """The cache that all arms have, in megabytes; None where one is unknown or another."""
    told = {facts.facts.get("settings", {}).get("shared_buffers") for facts in data.facts.values()}
    size = in_bytes(told.pop()) if len(told) == 1 and len(data.facts) == len(data.plan.arms) else None
    if size is None:
        return None
    told_gb = size / 2**30
    words = f"{told_gb:.3g} GB" if told_gb >= 1 else f"{size / 2**20:.3g} MB"
    return {"place": size / 1e6, "text": f"shared_buffers {words}"}
