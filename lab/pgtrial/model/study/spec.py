"""The study file: one question, the load, the arms and the rule of the verdict, every default written down here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from pgtrial.model.metrics import known_metrics
from pgtrial.model.published import known_name, published_names
from pgtrial.model.records import Record
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.servers import Given, Server, server_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.units import Seconds, Share, as_list


class StudySection(Record):
    """The question."""

    question: str = Field("Which arm is faster?", description="The report's title.")
    name: str = Field("", description="Default: the file's name.")
    profile: str | None = Field(None, description="Written by pgtrial (`--profile`).")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Of order and load; default: drawn.")
    published: Annotated[str, AfterValidator(known_name)] | None = Field(
        None,
        description="Published figures that the report sets beside this study's: " + ", ".join(published_names()) + ".",
    )


class VerdictSection(Record):
    """The rule, fixed before the first trial."""

    metrics: Annotated[list[str], BeforeValidator(as_list), AfterValidator(known_metrics)] = Field(
        [],
        description='What is [compared](method.md#metrics), `["p99", "wal per transaction"]`: the first decides. '
        "Default: `tps`, at a rate `response`.",
    )
    error: Literal["primary", "all"] = Field(
        "primary",
        description="What errs in at most 5% of studies: the primary claims together, and each other family by itself; "
        "or all claims that are printed together, which takes more blocks.",
    )
    margin: Share = Field(0.01, gt=0, lt=1, description="Smaller differences are equivalent.")
    blocks: int | None = Field(None, ge=1, description="Most blocks; default: what the budget holds.")
    budget: Seconds = Field(
        3600.0,
        gt=0,
        description="Time for all blocks; one hour where neither the file nor `--budget` gives another, for every "
        "command but `selftest`, which takes 10 minutes. A slower study ends at the last look that comes within this "
        "and a quarter; up to the first look, before which there is no verdict, within this and three minutes if that "
        "is more.",
    )
    stop_early: bool = Field(True, description="Whether the study ends when all primary comparisons are decided.")
    drop_decided: bool = Field(
        False,
        description="Whether an arm [leaves](method.md#arms-that-leave) when its comparisons are decided; the "
        "others get its time.",
    )
    allow_busy_client: bool = Field(
        False,
        description="Whether a comparison gets a verdict although the client was the limit, or late, in more than "
        "one in eight trials.",
    )
    studies: int | None = Field(
        None,
        ge=1,
        description="How many studies share the 5% of error, this one among them. Default: 1.",
    )
    final: bool = Field(
        False,
        description="Whether the study ends for good: its looks spend the whole error of 5%, and it never "
        "[goes on](method.md#going-on) with more blocks. `gate`, `bisect` and `selftest` set it.",
    )
    one_sided: bool = Field(
        False,
        description="Whether the study asks only if an arm is worse: nine tenths of the error are on the side of "
        "worse and one tenth on that of better, and an arm is done when a loss of the margin or more is excluded. "
        "`gate` sets it, except with `--fail-on not-equivalent` and `--base-twice`.",
    )


class _Origins(dict[str, str]):
    """The files in which the user wrote the scripts, by the scripts' names. Studies that differ only in them are
    equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Origins)

    __hash__ = None


class StudySpec(Record):
    """A whole study, as read from TOML or built from a command line."""

    study: StudySection = StudySection()
    load: LoadSection = LoadSection()
    server: SetUp = SetUp()
    arms: dict[str, SetUp] = Field(min_length=1, description="The arms; the first is the baseline.")
    verdict: VerdictSection = VerdictSection()
    fleet: FleetSection | None = Field(None, description="The machines that make the load; default: this one.")
    _scripts: dict[str, str] = PrivateAttr(default_factory=dict)
    _origins: _Origins = PrivateAttr(default_factory=_Origins)

    @property
    def scripts(self) -> dict[str, str]:
        """Returns the text of each script of the study's own, by its name. Scripts are kept in files of their own, not
        in the TOML."""
        return self._scripts

    def with_scripts(self, scripts: dict[str, str], origins: Mapping[str, str] | None = None) -> StudySpec:
        """Returns the same study with these texts of scripts; `origins` has the files in which the user wrote them, for
        messages."""
        copy = self.model_copy()
        copy._scripts = scripts
        copy._origins = _Origins(origins or {})
        return copy

    def origin(self, script: str) -> str:
        """Returns the file in which the user wrote a script, or the script's name if the file is not known."""
        return self._origins.get(script, script)

    @property
    def baseline(self) -> str:
        """Returns the name of the first arm."""
        return next(iter(self.arms))

    @property
    def has_given(self) -> bool:
        """True if an arm is a given server."""
        return any(isinstance(self.resolved(arm), Given) for arm in self.arms)

    def resolved(self, arm: str) -> Server:
        """Returns the server of one arm, with the keys that all arms share filled in."""
        return server_of(self.server, self.arms[arm])


def is_paced(spec: StudySpec) -> bool:
    """True if the number of transactions is given, so that the server's speed does not change it."""
    return spec.load.kind.is_paced(spec.load)


def load_points(spec: StudySpec) -> list[LoadPoint]:
    """Returns the load points of the study: a single one, or each combination of the values that its lists have, in the
    order of the study file."""
    return spec.load.kind.points(spec)
