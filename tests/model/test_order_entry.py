"""Tests of the keys that a study accepts for the workload order-entry."""

from __future__ import annotations

import pytest

from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.order_entry_tables import OrderEntryTables
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec, load_points
from pgtrial.store.study_file import build_study


def spec(**load: object) -> StudySpec:
    return build_study({"load": load, "arms": {"a": {}, "b": {"settings": {"jit": "off"}}}}, "test")


def test_its_scale_is_the_number_of_warehouses():
    study = spec(workload=["order-entry", "tpcb-like"], scale=[2, 5], fillfactor=90)
    points = load_points(study)
    assert [point.label for point in points[:2]] == [
        "order-entry, scale 2, 8 clients",
        "order-entry, scale 5, 8 clients",
    ]
    assert [data_of(study, point) for point in points[:2]] == [OrderEntryTables(2, 90), OrderEntryTables(5, 90)]
    assert points[0].slug == "order-entry-s2-c8"


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"check": True}, "check is for the workload order-entry; set this workload, or remove check"),
        ({"procedures": True}, "procedures is for the workload order-entry; set this workload, or remove procedures"),
        (
            {"workload": "order-entry", "scale": 20_000},
            "scale is the number of warehouses of order-entry, at most 10,000",
        ),
        ({"workload": "order_entry"}, "'order_entry' is not a built-in workload; did you mean order-entry?"),
    ],
)
def test_mistakes_are_named(load, message):
    with pytest.raises(StudyError) as refused:
        spec(**load)
    assert message in str(refused.value)


def test_two_sets_of_tables_differ_in_their_digest():
    digests = {OrderEntryTables(w, f, k).digest for w in (1, 2) for f in (90, 100) for k in (False, True)}
    assert len(digests) == 8
    assert all(digest.startswith("orders ") for digest in digests)
