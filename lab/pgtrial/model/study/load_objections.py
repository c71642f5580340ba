"""Checks that the keys of `[load]` do not contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from pgtrial.model import marks
from pgtrial.model.study.kinds import KINDS, kind_of
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.load_values import AUTO
from pgtrial.model.study.order_entry import MOST_WAREHOUSES, ORDER_ENTRY
from pgtrial.model.study.own_data import objections_to_weights
from pgtrial.model.study.sysbench import SysbenchSection, is_sysbench


def objections(load: LoadKeys) -> Iterator[str]:
    """Yields a sentence for each contradiction between keys of a load."""
    return chain(
        _objections_to_limits(load),
        _objections_to_own_data(load),
        *(kind.objections(load) for kind in KINDS),
    )


def _objections_to_limits(load: LoadKeys) -> Iterator[str]:
    """Yields a sentence for each key whose value is out of range, or that does not apply to the workload."""
    if load.latency_limit is not None and load.max_tries is None:
        yield (
            f"{marks.short_key('load', 'latency_limit')} ends the tries of a transaction; set max_tries as well, to 0 "
            "if nothing else should end them"
        )
    if load.latency_limit is not None and load.rate:
        yield (
            f"{marks.short_key('load', 'latency_limit')} at a rate would skip the transactions that are "
            "already late and flatter the response time; leave out the limit or the rate"
        )
    if not kind_of(load).takes_decimal_scales and (
        decimal := [scale for scale in load.scale if not isinstance(scale, int)]
    ):
        yield (
            f"{marks.short_key('load', 'scale')} is {decimal[0]:g}, and for {load.workload[0]} it has to be a whole "
            "number; round it"
        )
    if any(map(is_sysbench, load.workload)):
        yield from _objections_of_sysbench(load)
    elif load.sysbench != SysbenchSection():
        sysbench = marks.short_key("load", "sysbench")
        yield f"{sysbench} is for workloads that are tests of sysbench, and no workload of this study is one; remove it"
    if ORDER_ENTRY in load.workload:
        if max(load.scale) > MOST_WAREHOUSES:
            scale = marks.short_key("load", "scale")
            yield f"{scale} is the number of warehouses of {ORDER_ENTRY}, at most {MOST_WAREHOUSES:,}; choose fewer"
    elif load.check or load.procedures:
        given = marks.short_key("load", "check" if load.check else "procedures")
        yield f"{given} is for the workload {ORDER_ENTRY}; set this workload, or remove {given}"


def _objections_of_sysbench(load: LoadKeys) -> Iterator[str]:
    if load.protocol == "extended":
        prepared = marks.short_key("load", "protocol", "prepared")
        yield f"tests of sysbench know the protocols prepared and simple; set {prepared}"
    if load.warmup != AUTO and load.warmup != int(load.warmup):
        warmup = marks.short_key("load", "warmup")
        yield f"{warmup} is {load.warmup:g}s, and with tests of sysbench it has to be whole seconds; round it"
    if any(rate != int(rate) for rate in load.rate):
        yield "tests of sysbench are started at whole numbers of transactions per second; round the rate"
    if load.max_tries is not None:
        yield (
            f"{marks.short_key('load', 'max_tries')} is for pgbench's workloads; tests of sysbench begin an event "
            "again by themselves; remove the key"
        )
    if load.on_server_loss != "fail":
        yield (
            f"{marks.short_key('load', 'on_server_loss', load.on_server_loss)} is not for tests of sysbench, whose "
            'clients do not connect again; write "fail", or give them a study of their own'
        )


def _objections_to_own_data(load: LoadKeys) -> Iterator[str]:
    if load.query is not None and "workload" in load.model_fields_set:
        query, workload = marks.short_key("load", "query"), marks.short_key("load", "workload")
        yield f"{query} stands in place of {workload}; leave one of the two out"
    yield from objections_to_weights(load.workload)
    yield from kind_of(load).objections_to_data(load)
