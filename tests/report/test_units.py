"""A report names what a load does in a second by its own unit: programs and replays have no transactions."""

import json
import re

from pgtrial.cli.terminal import Terminal
from pgtrial.cli.verdict import in_full
from pgtrial.model.records.facts import Audit
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.report.build import build_report, render
from pgtrial.report.data import read_data
from pgtrial.report.sections import sections
from tests.report.conftest import write_study
from tests.verdict.slices import alternate, interleaved_plan, noisy_slices
from tests.verdict.studies import make_plan, noisy, run

PROGRAMS = [
    LoadPoint(workload="select-only", scale=1, clients=clients, protocol="the driver's", programs=True)
    for clients in (1, 2, 4, 8, 16, 32)
]
TPS = re.compile(r"\btps\b")


def shown(figure):
    """Returns all texts that a reader of a chart sees, that is without names of fields and expressions."""
    words = [figure.title, figure.alt, figure.unit]

    def walk(part):
        match part:
            case dict():
                words.extend(str(text) for key, text in part.items() if key == "title" and text)
                list(map(walk, part.values()))
            case list():
                list(map(walk, part))

    walk(json.loads(json.dumps(figure.spec)))
    return words


def test_a_report_of_programs_speaks_of_operations(tmp_path, capsys):
    plan = make_plan(points=PROGRAMS).model_copy(update={"metrics": ["tps", "p99"]})
    study = write_study(tmp_path / "s", plan, run(plan, noisy({"off": 1.4})), Audit(findings=[]), "Faster?")
    build_report(study)
    text = render(study, "md")
    assert "operations/s" in text
    assert not [line for line in text.splitlines() if TPS.search(line)]
    figures = [figure for section in sections(read_data(study)) for figure in section.figures]
    assert figures
    assert not [words for figure in figures for words in shown(figure) if TPS.search(words)]
    # the metric of that study is called tps, as its file calls it
    Terminal().print(in_full(read_data(study).result.model_copy(update={"metrics": []})))
    assert not TPS.search(capsys.readouterr().out)


def test_slices_of_programs_are_measured_in_operations(tmp_path):
    plan = interleaved_plan(points=PROGRAMS[:1])
    trials, slices = alternate(plan, noisy_slices(0.02, 0.02))
    study = write_study(tmp_path / "s", plan, trials, Audit(findings=[]), "Faster?", slices=slices)
    build_report(study)
    assert not [line for line in render(study, "md").splitlines() if TPS.search(line)]
