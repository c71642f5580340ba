"""The published figures read, and say what their articles say."""

import pytest
from pydantic import ValidationError

from pgtrial.model.published import Figure, Published, published_names, read_published, same_arm

SOURCE = {"title": "A", "by": "B", "year": "2020"}


def test_all_five_articles_are_there_with_a_source_a_machine_and_a_figure_or_a_claim():
    assert published_names() == [
        "app-tasks",
        "filesystem-durability",
        "huge-pages",
        "managed-cloud",
        "os-comparison",
    ]
    for name in published_names():
        published = read_published(name)
        assert published.source.title
        assert published.machine
        assert published.parameters
        assert published.figures or published.claims


def test_a_file_that_says_nothing_is_refused():
    with pytest.raises(ValidationError, match="must have a figure or a claim"):
        Published.model_validate({"source": SOURCE, "machine": {}, "parameters": {}})


def test_a_baseline_is_one_of_the_series():
    with pytest.raises(ValidationError, match="is not one of its series"):
        Figure.model_validate(
            {
                "title": "t",
                "unit": "tps",
                "over": "clients",
                "baseline": "c",
                "series": [{"name": "a", "points": [{"value": 1}]}],
            }
        )


def test_the_minutes_of_the_managed_server_add_up_to_its_published_average():
    (minutes,) = next(
        figure.series
        for figure in read_published("managed-cloud").figures
        if figure.title.startswith("pgbench, minute")
    )
    mean = sum(point.value for point in minutes.points) / len(minutes.points)
    assert mean == pytest.approx(782.08, rel=0.002)


@pytest.mark.parametrize(
    ("unit", "value", "baseline", "ratio"),
    [
        ("tps", 300, 100, 3.0),
        ("transactions per minute", 50000, 7000, 50 / 7),
        ("s", 2.0, 1.0, 0.5),
        ("tasks", 14913, 14926, None),
    ],
)
def test_faster_is_more_transactions_or_less_time_and_counts_are_no_speed(unit, value, baseline, ratio):
    figure = Figure.model_validate(
        {"title": "t", "unit": unit, "over": "clients", "series": [{"name": "a", "points": [{"value": 1}]}]}
    )
    assert figure.ratio(value, baseline) == ratio


@pytest.mark.parametrize(
    ("names", "arms", "found"),
    [
        (["ext4-nobarrier"], ["xfs", "ext4 (nobarrier)"], "ext4 (nobarrier)"),
        (["FreeBSD-ZFS", "FreeBSD"], ["freebsd", "freebsd_zfs"], "freebsd_zfs"),
        (["ext4-nobarrier"], ["ext4"], None),
        ([], ["ext4"], None),
    ],
)
def test_an_arm_is_known_by_its_letters_and_digits_and_the_first_name_wins(names, arms, found):
    assert same_arm(names, arms) == found
