"""The study file: the question, the load, the arms and the rule of the verdict. All defaults are in the types of its
sections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from pgtrial.model.metrics import each_once
from pgtrial.model.published import known_name, published_names
from pgtrial.model.records import Record, added
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.own_metrics import OwnMetric
from pgtrial.model.study.factors import have_levels, objections_to_factors
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_data import name_of_data
from pgtrial.model.study.own_metrics import MetricSection, metrics_of_reads, metrics_of_sections
from pgtrial.model.study.servers import Given, Server, server_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.units import Seconds, Setting, Share, Whole, as_list


class StudySection(Record):
    """The question that the study answers, and the order of its trials."""

    question: str = Field("Which arm is faster?", description="The question, which is the title of the report.")
    name: str = Field(
        "",
        description="The name of the study, with which the name of its directory below `results/` begins. Default: "
        "the name of the file.",
    )
    profile: str | None = Field(
        None,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "profile that `--profile` has chosen.",
    )
    seed: Whole | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="The seed for the order of the trials and for the random numbers of the load. Default: a "
        "random seed, which the plan stores.",
    )
    published: Annotated[str, AfterValidator(known_name)] | None = Field(
        None,
        description="The name of a published comparison, whose figures the report shows next to those of this study: "
        + ", ".join(published_names())
        + ".",
    )


class VerdictSection(Record):
    """The rule of the verdict, which is fixed before the first trial."""

    metrics: Annotated[list[str], BeforeValidator(as_list), AfterValidator(each_once)] = Field(
        [],
        description='The [metrics](method.md#metrics) that are compared, `["p99", "wal per transaction"]`. The '
        "first one decides the verdict. Default: `tps`, or `response` if the load has a rate, or the numbers of "
        "[your harness](own-harness.md). [Metrics of your own](own-metrics.md) follow those that are listed here.",
    )
    error: Literal["primary", "all"] = Field(
        "primary",
        description="Which claims together are wrong in at most 5% of studies. `primary`: the primary claims "
        "together, and each other group of claims by itself. `all`: all claims that the report prints, for which a "
        "study needs more blocks. A [gate](gate.md#how-often-it-is-wrong) of a suite or a replay sets `all`.",
    )
    margin: Share = Field(
        0.01, gt=0, lt=1, description="The margin of equivalence: differences that are smaller count as equivalent."
    )
    blocks: Whole | None = Field(
        None,
        ge=1,
        description="The largest number of blocks that the study runs. Default: as many as fit into the budget.",
    )
    budget: Seconds = Field(
        3600.0,
        gt=0,
        description="The time in seconds for all blocks. The default of `selftest` is 10 minutes. If trials "
        "take longer than planned, the study ends at the last look (planned interim analysis) that "
        "it reaches within a quarter more than the budget. To reach its first look, before which "
        "there is no verdict, it may exceed the budget by a quarter or by three minutes, whichever "
        "is longer.",
    )
    stop_early: bool = Field(
        True,
        description="True to end the study at the first look (planned interim analysis) at which all primary "
        "claims are decided.",
    )
    drop_decided: bool = Field(
        False,
        description="True to [stop measuring an arm](method.md#arms-that-leave) when its claims are decided. The "
        "other arms get its time.",
    )
    allow_busy_client: bool = Field(
        False,
        description="True to give a verdict even if the load engine was the bottleneck, or sent transactions "
        "late, in more than one in eight trials.",
    )
    studies: Whole | None = Field(
        None,
        ge=1,
        description="The number of studies, this one included, that together may give a wrong verdict with a "
        "probability of 5%. Each then has an equal part of this error and needs more blocks. A "
        "[gate of several studies](gate.md#several-studies) sets it. Default: 1.",
    )
    final: bool = Field(
        False,
        description="True if the study cannot [go on](method.md#going-on) with more blocks after its plan. Its "
        "looks (planned interim analyses) then spend the whole error of 5%. `gate`, `bisect` and "
        "`selftest` set it.",
    )
    one_sided: bool = Field(
        False,
        description="True if the study mainly asks whether an arm is worse. Nine tenths of the error are then "
        'for "worse" and one tenth for "better", and an arm is decided as soon as a loss of the '
        "margin or more is excluded. `gate` sets it, except with `--fail-on not-equivalent` and "
        "`--base-twice`.",
    )


class _Origins(dict[str, str]):
    """The files in which the user wrote the scripts of a study, by the scripts' names. All objects of this type are
    equal, so that studies which differ only in these files are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Origins)

    __hash__ = None


class StudySpec(Record):
    """A whole study, as pgtrial reads it from a study file or builds it from a command line."""

    study: StudySection = StudySection()
    load: LoadSection = LoadSection()
    server: SetUp = SetUp()
    arms: dict[str, SetUp] = Field(min_length=1, description="The arms by their names. The first one is the baseline.")
    verdict: VerdictSection = VerdictSection()
    metrics: dict[str, MetricSection] = added(
        {}, "The metrics that the study file defines in `[metrics.NAME]`, by name."
    )
    factors: dict[str, Annotated[list[Setting], Field(min_length=2, max_length=2)]] = added(
        {},
        "The factors of a screening study by name, each with its two levels. They take the place of the arms.",
    )
    fleet: FleetSection | None = Field(None, description="The machines that make the load. Default: this machine.")
    _scripts: dict[str, str] = PrivateAttr(default_factory=dict)
    _origins: _Origins = PrivateAttr(default_factory=_Origins)

    @model_validator(mode="after")
    def _arms_are_those_of_the_factors(self) -> StudySpec:
        """Refuses factors that a study file could not have, and arms with other levels. pgtrial shows the arms to a
        person who is about to run the study of somebody else, and starts servers with the levels of the factors."""
        if not self.factors:
            return self
        if objection := next(objections_to_factors(self.factors), None):
            raise ValueError(objection)
        if not have_levels(self.arms, self.factors):
            raise ValueError("the arms of a screening study must have the levels of its factors")
        return self

    @property
    def scripts(self) -> dict[str, str]:
        """Returns the text of each script that belongs to the study, by its name. Scripts are stored in files of their
        own, not in the TOML file."""
        return self._scripts

    def with_scripts(self, scripts: dict[str, str], origins: Mapping[str, str] | None = None) -> StudySpec:
        """Returns the same study with these texts of scripts. `origins` has the files in which the user wrote the
        scripts, which messages name."""
        copy = self.model_copy()
        copy._scripts = scripts
        copy._origins = _Origins(origins or {})
        return copy

    def with_verdict(self, **changed: Any) -> StudySpec:
        """Returns the same study with other values of these keys of `[verdict]`. The values are not checked."""
        return self.model_copy(update={"verdict": self.verdict.model_copy(update=changed)})

    def origin(self, script: str) -> str:
        """Returns the file in which the user wrote a script, or the script's name if the file is not known."""
        return self._origins.get(script, script)

    @property
    def baseline(self) -> str:
        """Returns the name of the baseline, which is the first arm."""
        return next(iter(self.arms))

    @property
    def own_metrics(self) -> dict[str, OwnMetric]:
        """Returns the metrics that the study file defines, by name."""
        return metrics_of_reads(self.load.job.reads) | metrics_of_sections(self.metrics)

    @property
    def has_given(self) -> bool:
        """True if an arm is a given server, which somebody else runs."""
        return any(isinstance(self.resolved(arm), Given) for arm in self.arms)

    def resolved(self, arm: str) -> Server:
        """Returns the server of one arm, with the keys that all arms share filled in."""
        return server_of(self.server, self.arms[arm])

    @property
    def has_arm_data(self) -> bool:
        """True if arms have data of their own. Then every arm names its files, and `load.data` has the files of the
        baseline."""
        return any(keys.data_files is not None for keys in self.arms.values())

    def for_arm(self, arm: str) -> StudySpec:
        """Returns the study as it applies to one arm: `load.data` is the arm's own data if it has any."""
        keys = self.arms[arm]
        if keys.data_files is None:
            return self
        load = self.load.model_copy(update={"data": keys.data, "data_files": keys.data_files})
        return self.model_copy(update={"load": load})

    def values_of(self, arm: str) -> dict[str, str]:
        """Returns the columns from which the variables of an arm's script take their values, by the name of the
        variable."""
        return {**self.load.values, **(self.arms[arm].values or {})}


def have_own_setup(spec: StudySpec) -> bool:
    """True if the arms differ in the SQL that runs on their copies of the data before each trial."""
    return any(keys.setup_sql != spec.arms[spec.baseline].setup_sql for keys in spec.arms.values())


def is_paced(spec: StudySpec) -> bool:
    """True if the study fixes the number of transactions, so that the server's speed does not change it."""
    return spec.load.kind.is_paced(spec.load)


def load_points(spec: StudySpec) -> list[LoadPoint]:
    """Returns the load points of the study: one for each combination of the values in the lists of `[load]`, in the
    order of the study file."""
    points = spec.load.kind.points(spec)
    if not spec.has_arm_data:
        return points
    names = list(dict.fromkeys(name_of_data(keys.data or []) for keys in spec.arms.values()))
    name = " or ".join(names) if len(names) <= _NAMED else f"{len(names)} sets of data"
    return [point.model_copy(update={"data": name}) for point in points]


_NAMED = 3
"""The largest number of data sets whose names the label of a load point lists."""
