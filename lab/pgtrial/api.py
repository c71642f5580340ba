"""pgtrial from Python: open a stored study and read its verdict, trials, seconds and latencies; or run a comparison."""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from pgtrial.conduct.progress import Listener, reworded
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.files.trust import without_weak_folders
from pgtrial.files.writing import replace_file
from pgtrial.model.errors import StudyError
from pgtrial.model.latencies import Latencies
from pgtrial.model.marks import in_toml
from pgtrial.model.quoting import quoted
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.results import StudyResult
from pgtrial.model.resources import resource
from pgtrial.report.brief import brief
from pgtrial.report.build import build_report
from pgtrial.report.data import StudyData, read_measured, with_tables
from pgtrial.report.frames import second_frame, trial_frame
from pgtrial.report.sections import draw
from pgtrial.store.bundle import open_study
from pgtrial.store.comparison import comparison
from pgtrial.store.directory import StudyDirectory

_WIDTH = 640
"""The width of a chart, pixels."""
_GREY = "#57606e"
"""The grey that replaces colours whose value the page takes from its style sheet."""
_VEGA_LITE = "application/vnd.vegalite.v6+json"
"""The type of a notebook's output."""


class Latency:
    """The latencies of all committed transactions of some trials, as one histogram. Microseconds."""

    def __init__(self, latencies: Latencies):
        self._latencies = latencies

    @property
    def count(self) -> int:
        """The number of transactions."""
        return self._latencies.total

    @property
    def mean(self) -> float:
        """The mean latency, microseconds."""
        return self._latencies.mean

    def quantile(self, share: float) -> float:
        """Returns the latency, in microseconds, that a share of the transactions does not exceed; for 0.99 the 99th
        percentile.

        Raises ValueError for a share outside 0 to 1.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is not a share; a quantile is between 0 and 1, e.g. 0.99")
        return float(self._latencies.percentile(100 * share))


class Chart:
    """A chart in Vega-Lite. A notebook draws it; `save` writes it."""

    def __init__(self, spec: dict[str, Any]):
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        """Returns the specification in Vega-Lite, with its data."""
        return self._spec

    def save(self, path: str | Path) -> None:
        """Writes the chart as .svg, .png, .html or .json. Raises ValueError for another ending."""
        file = Path(path)
        match file.suffix:
            case ".svg":
                content = vl_convert.vegalite_to_svg(self._spec).encode()
            case ".png":
                content = vl_convert.vegalite_to_png(self._spec, scale=2)
            case ".html":
                content = vl_convert.vegalite_to_html(self._spec, bundle=True).encode()
            case ".json":
                content = json.dumps(self._spec).encode()
            case _:
                raise ValueError(f"{file} has none of the endings .svg, .png, .html and .json")
        replace_file(file, content)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Returns the chart in the formats that a notebook draws: its Vega-Lite specification, or else its text."""
        return {_VEGA_LITE: self._spec, "text/plain": repr(self)}


class Plots:
    """The charts of the report: `study.plot.tps()` in a notebook, or with `.save("tps.svg")`."""

    def __init__(self, data: Callable[[], StudyData]):
        self._data = data

    def tps(self) -> Chart:
        """Returns the chart of the throughput: the median trial of each arm with its interval, and single trials."""
        return self._chart("tps")

    def difference(self) -> Chart:
        """Returns the chart of the difference to the baseline with its interval, against the margin."""
        return self._chart("ratio")

    def sweeps(self) -> Chart:
        """Returns the charts of sweeps over six or more numbers of clients or sizes: scalability laws, and cliffs."""
        return self._chart("sweeps")

    def latency(self) -> Chart:
        """Returns the chart of the latency percentiles of each arm."""
        return self._chart("latency")

    def timeline(self) -> Chart:
        """Returns the charts of every second of every trial."""
        return self._chart("timeline")

    def costs(self) -> Chart:
        """Returns the charts that compare the costs of a transaction on each arm with those on the baseline."""
        return self._chart("costs")

    def blocks(self) -> Chart:
        """Returns the chart of each block's log-ratio."""
        return self._chart("blocks")

    def _chart(self, section: str) -> Chart:
        figures = draw(section, self._data())
        if not figures:
            raise StudyError(f"this study has nothing for the chart {quoted(section)} yet")
        charts = [_with_colours({**figure.spec, "title": figure.title, "width": _WIDTH}) for figure in figures]
        return Chart(charts[0] if len(charts) == 1 else _one_below_another(charts))


def _one_below_another(charts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns several charts as one. The parts that only a whole chart may have move up to it: datasets, and the
    parameters that the reader chooses.
    """
    datasets: dict[str, Any] = {}
    chosen: dict[str, dict[str, Any]] = {}
    parts = []
    for number, chart in enumerate(charts):
        names = {name: f"chart{number}-{name}" for name in chart["datasets"]}
        datasets |= {names[name]: rows for name, rows in chart["datasets"].items()}
        for param in chart.get("params", ()):
            known = chosen.setdefault(param["name"], param)
            if len(_options(param)) > len(_options(known)):
                chosen[param["name"]] = param
        whole = ("$schema", "autosize", "datasets", "params")
        parts.append(_with_data({key: value for key, value in chart.items() if key not in whole}, names))
    return {"vconcat": parts, "datasets": datasets, "params": list(chosen.values())}


def _options(param: dict[str, Any]) -> list[Any]:
    """Returns the values among which a reader can choose for an interactive parameter of a chart."""
    bind = param.get("bind")
    return bind.get("options", []) if isinstance(bind, dict) else []


def _with_data(spec: Any, names: dict[str, str]) -> Any:
    """Returns the specification with other names of its named data."""
    if isinstance(spec, list):
        return [_with_data(part, names) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: {**value, "name": names[value["name"]]}
        if key == "data" and isinstance(value, dict) and value.get("name") in names
        else _with_data(value, names)
        for key, value in spec.items()
    }


def _with_colours(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns a chart in which names of colours of the page's style sheet, such as `--accent`, are replaced by their
    values."""
    colours = dict(re.findall(r"(--[\w-]+): (#\w+);", resource("page/report.css", "pgtrial.report").split("}")[0]))
    coloured: dict[str, Any] = _coloured(spec, colours)
    return coloured


def _coloured(spec: Any, colours: Mapping[str, str]) -> Any:
    match spec:
        case dict():
            return {key: _coloured(value, colours) for key, value in spec.items()}
        case list():
            return [_coloured(part, colours) for part in spec]
        case str() if spec.startswith("--"):
            return colours.get(spec, _GREY)
    return spec


class Study:
    """A stored study, finished or not. Its values are read at the first access; open it again to see later trials."""

    def __init__(self, directory: StudyDirectory, path: Path):
        self._directory = directory
        self.path = path
        """The directory or the bundle."""

    def __repr__(self) -> str:
        return f"<pgtrial.Study {self.path}: {self.question}>"

    def __str__(self) -> str:
        """Returns the headline of each comparison."""
        return "\n".join(headline.text for headline in brief(self.verdict, self.plan).headlines)

    @property
    def question(self) -> str:
        """The question that the study asks."""
        return self._directory.spec.study.question

    @property
    def plan(self) -> Plan:
        """Arms, load points, order and looks."""
        return self._directory.plan

    @property
    def arms(self) -> list[str]:
        """The names of the arms, the baseline first."""
        return list(self.plan.arms)

    @property
    def load_points(self) -> list[str]:
        """The label of each load point."""
        return [point.label for point in self.plan.load_points]

    @cached_property
    def _measured(self) -> StudyData:
        return read_measured(self._directory)

    @cached_property
    def _data(self) -> StudyData:
        return with_tables(self._measured, self._directory)

    @property
    def verdict(self) -> StudyResult:
        """Everything that verdict.json holds, computed from the stored trials. Raises StoreError for a damaged file."""
        return self._measured.result

    @cached_property
    def trials(self) -> pl.DataFrame:
        """A row for each trial: arm, load point, tps, latencies in microseconds. Raises StoreError."""
        return trial_frame(self._directory)

    @cached_property
    def seconds(self) -> pl.DataFrame:
        """A row for each second of each trial. Raises StoreError."""
        return second_frame(self._directory)

    @property
    def plot(self) -> Plots:
        """The charts of the report."""
        return Plots(lambda: self._data)

    def latency(self, arm: str, load_point: str | None = None) -> Latency:
        """Returns the latencies of an arm at a load point (its label; it may be left out where there is only one).

        Raises StudyError for an unknown name, or if no trial has a histogram.
        """
        if arm not in self.arms:
            raise StudyError(f"{self.path} has no arm {quoted(arm)}; its arms are {', '.join(self.arms)}")
        labels = self.load_points
        if load_point is None and len(labels) > 1:
            raise StudyError(f"{self.path} has {len(labels)} load points; name one of {labels}")
        if load_point is not None and load_point not in labels:
            raise StudyError(f"{self.path} has no load point {quoted(load_point)}; name one of {labels}")
        trials = [t for t in self._measured.trials if t.arm == arm and load_point in (None, t.load_point.label)]
        known = [latencies for trial in trials if (latencies := self._directory.latencies(trial)) is not None]
        if not known:
            raise StudyError(f"no trial of {arm} in {self.path} has a histogram of its latencies")
        return Latency(Latencies.sum_of(known))


def open(path: str | Path) -> Study:
    """Opens a study directory or a bundle. Raises StoreError."""
    with ExitStack() as stack:
        study = Study(stack.enter_context(open_study(Path(path))), Path(path))
        # a bundle is unpacked for as long as its study is in use
        weakref.finalize(study, stack.pop_all().close)
    return study


def compare(
    *arms: str,
    question: str | None = None,
    results: str | Path | None = None,
    seed: int | None = None,
    on_progress: Listener | None = None,
    verdict: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    **load: Any,
) -> Study:
    """Runs a comparison as `pgtrial compare` does, and writes its report.

    `arms` are written as on the command line, the baseline first. `load`, `verdict` and `server` hold keys of these
    sections of a study file: compare("jit=on", "jit=off", workload="select-only", clients=8, verdict={"budget":
    "10min"}). `results` is the directory of the study. If there is an unfinished study in it, it goes on. Raises
    StudyError, ArmError or StoreError, each with one sentence.
    """
    without_weak_folders()
    sections = {"load": load, "server": server or {}, "verdict": verdict or {}}
    spec = comparison(arms, "pgtrial.compare", question, seed, sections)
    study, _ = find_or_create(spec, Path(results) if results is not None else None, anew=False)
    run_study(study, reworded(on_progress or (lambda event: None), in_toml), spec=spec)
    build_report(study)
    return open(study.path)
