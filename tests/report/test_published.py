"""A study beside published figures: the same pairs of arms, as ratios, and nothing where there is no such pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.model.published import published_names, read_published
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.charts.levels import size_charts
from pgtrial.report.data import StudyData, read_data
from pgtrial.report.published import Beside, Contrast, beside, ratio_text
from pgtrial.report.sections import draw
from pgtrial.report.tables.published import published_tables
from tests.verdict.studies import LoadPoint, make_plan, noisy, run

from .conftest import Studies, write_study


def study(
    path: Path,
    arms: Sequence[str],
    published: str,
    *,
    clients: Sequence[int] = (1, 8),
    upto: int | None = None,
    workload: str = "tpcb-like",
) -> StudyData:
    """Returns a study in which each further arm is half as fast as the one before it."""
    points = [LoadPoint(workload=workload, scale=10, clients=n, protocol="prepared") for n in clients]
    plan = make_plan(arms, points=points, blocks=8 if len(arms) == 2 else 12, duration_s=2.0)
    ratios = {arm: 0.5**i for i, arm in enumerate(arms)}
    trials = run(plan, noisy(ratios, sd=0.01), upto=upto)
    return read_data(write_study(path / "study", plan, trials, Audit(findings=[]), "Which?", published=published))


@pytest.fixture(scope="module")
def sizes(studies: Studies) -> StudyData:
    return read_data(studies("sizes"))


def contrasts(data: StudyData) -> list[Contrast]:
    found = beside(data)
    assert found is not None
    return found.contrasts


def test_a_published_ratio_stands_beside_this_studys_with_its_interval(tmp_path):
    data = study(tmp_path, ("ext4", "ext4-nobarrier"), "filesystem-durability")
    contrast = contrasts(data)[0]
    claim = data.result.primary[0]
    assert contrast.published == pytest.approx(50 / 7)
    assert contrast.exact == "approximate"
    assert contrast.ours is not None
    assert claim.difference is not None
    assert contrast.ours.value == pytest.approx(1 + claim.difference.value)
    assert contrast.ours.low == pytest.approx(1 + (claim.difference.low or 0))
    assert contrast.ours.where == "mean over 2 load points"


def test_a_study_whose_baseline_is_the_published_arm_is_turned_round(tmp_path):
    data = study(tmp_path, ("ext4-nobarrier", "ext4"), "filesystem-durability")
    ours = contrasts(data)[0].ours
    assert ours is not None
    assert (ours.arm, ours.baseline) == ("ext4-nobarrier", "ext4")
    assert ours.value == pytest.approx(2, rel=0.02)
    assert ours.low is not None
    assert ours.high is not None
    assert ours.low < ours.value < ours.high


def test_arms_that_only_a_third_arm_joins_have_no_claim_of_this_study(tmp_path):
    data = study(tmp_path, ("xfs", "ext4", "ext4-nobarrier"), "filesystem-durability")
    assert [contrast.ours for contrast in contrasts(data)] == [None, None, None]


def test_no_mean_is_taken_over_several_scales_but_the_smallest_and_the_largest_ratio_stand(sizes):
    ours = [contrast.ours for contrast in contrasts(sizes) if contrast.figure == "ext4 on Linux"]
    found = [1 + claim.difference.value for claim in sizes.result.by_load_point if claim.difference]
    assert len(found) == 4
    assert [ratio.value for ratio in ours if ratio] == pytest.approx([min(found), max(found)])


def test_a_published_number_of_clients_stands_beside_the_nearest(tmp_path):
    data = study(tmp_path, ("centos", "freebsd-zfs"), "os-comparison", clients=(8, 64))
    stated = next(each for each in contrasts(data) if each.series == "FreeBSD, ZFS")
    assert stated.published == pytest.approx(8331.85 / 8987.65)
    assert stated.ours is not None
    assert stated.ours.where == "tpcb-like, scale 10, 64 clients"


def test_another_workload_is_not_compared(tmp_path):
    data = study(tmp_path, ("ext4", "ext4-nobarrier"), "filesystem-durability", workload="select-only")
    assert contrasts(data)[0].ours is None
    assert [figure.title for figure in draw("published", data)] == ["How far the arms are apart"]


def test_the_study_compares_means_and_no_medians_or_extremes(tmp_path):
    data = study(tmp_path, ("linux", "windows"), "app-tasks", clients=(8,))
    assert [(each.at, each.ours is not None) for each in contrasts(data)] == [
        ("lowest", False),
        ("median", False),
        ("mean", True),
        ("highest", False),
        ("1,000,000 rows", False),
    ]


def test_before_the_first_look_the_ratio_says_that_it_is_provisional(tmp_path):
    data = study(tmp_path, ("ext4", "ext4-nobarrier"), "filesystem-durability", upto=12)
    ours = contrasts(data)[0].ours
    assert ours is not None
    assert ratio_text(ours).endswith("x so far")


def test_claims_in_words_stand_beside_the_smallest_and_the_largest_ratio(sizes):
    _, claims, *_ = published_tables(sizes)
    assert claims.rows[0][1] == "–"
    assert claims.rows[1][1].count("ext4-nobarrier / ext4: 5.2") == 2
    assert claims.rows[1][1].count("scale") == 2


def test_a_claim_of_one_load_point_or_their_mean_stands_beside_one_ratio(tmp_path):
    data = study(tmp_path, ("4kB", "2MB", "1GB"), "huge-pages")
    _, claims, *_ = published_tables(data)
    assert claims.rows[0][1].startswith("2MB / 4kB: 0.")
    assert claims.rows[0][1].count("mean over 2 load points") == 1
    assert claims.rows[1][1].startswith("1GB / 4kB: 0.2")


def test_the_section_is_in_the_markdown_and_in_a_file_of_its_own(reports, sizes):
    directory = reports("sizes").path
    text = (directory / "report.md").read_text()
    section = text[text.index("## Beside the published figures") : text.index("## Latency")]
    assert "about 7.1x" in section
    assert "unix-experience.fr" in section
    assert "50,000" in section
    assert Beside.model_validate_json((directory / "published.json").read_text()) == beside(read_data(reports("sizes")))


def test_a_study_that_names_none_has_neither_section_nor_file(reports):
    directory = reports("demo").path
    assert "published figures" not in (directory / "report.html").read_text()
    assert not (directory / "published.json").exists()


@pytest.mark.parametrize("name", published_names())
def test_figures_of_arms_that_the_study_lacks_stand_alone(sizes, name):
    data = replace(sizes, plan=sizes.plan.model_copy(update={"arms": ["a|b", "<c>"]}), spec=_naming(sizes, name))
    assert all(contrast.ours is None for contrast in contrasts(data))
    tables = published_tables(data)
    assert tables[2].rows[0] == ["title", read_published(name).source.title]
    assert len(tables[1].rows) == len(read_published(name).claims)


def _naming(data: StudyData, name: str) -> StudySpec:
    return data.spec.model_copy(update={"study": data.spec.study.model_copy(update={"published": name})})


def test_levels_that_hold_at_any_number_of_clients_are_drawn_across_ours(sizes):
    figure = next(each for each in draw("published", sizes) if "scale 10" in each.title)
    levels = next(rows for rows in figure.spec["datasets"].values() if "series" in rows[0])
    assert [(row["series"], round(row["tps"])) for row in levels] == [("ext4, barrier", 117), ("ext4, nobarrier", 833)]


class TestOverSize:
    def test_there_is_a_chart_for_each_number_of_clients(self, sizes):
        assert [figure.title for figure in draw("tps", sizes)] == [
            "tpcb-like, scale 10",
            "tpcb-like, scale 40",
            "tpcb-like, 1 client, over database size",
            "tpcb-like, 8 clients, over database size",
        ]

    def test_a_study_of_one_scale_has_none(self, tmp_path):
        data = study(tmp_path, ("ext4", "xfs"), "filesystem-durability")
        assert size_charts(data) == []

    def test_sizes_are_those_of_the_data_with_its_fill_factor(self, sizes):
        half = sizes.spec.model_copy(update={"load": sizes.spec.load.model_copy(update={"fillfactor": 50})})
        figure = size_charts(replace(sizes, spec=half))[0]
        levels = next(rows for rows in figure.spec["datasets"].values() if "low" in rows[0])
        assert {(row["place"], row["where"]) for row in levels} == {(300, "300 MB"), (1200, "1.2 GB")}

    @pytest.mark.parametrize(
        ("buffers", "marked"),
        [
            (("256MB", "256MB"), True),
            (("256MB", "512MB"), False),
            (("256MB", None), False),
            (("64GB", "64GB"), False),
        ],
    )
    def test_shared_buffers_are_marked_where_all_arms_have_the_same_near_the_data(self, sizes, buffers, marked):
        facts = {
            arm: known.model_copy(update={"facts": {"settings": {"shared_buffers": size}}})
            for (arm, known), size in zip(sizes.facts.items(), buffers, strict=True)
        }
        figure = size_charts(replace(sizes, facts=facts))[0]
        assert ("All arms have shared_buffers 256 MB." in figure.alt) is marked
