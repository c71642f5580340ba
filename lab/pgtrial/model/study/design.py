"""The design of a study: everything that follows from its study file, computed once.

pgtrial makes the design when a study begins or is opened, and passes it on. Code that needs a load point, the server of
an arm, or the way in which trials alternate reads it from the design, so that all code of a run uses the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.metrics import PER_CENT, TPS
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Interleaving, Plan
from pgtrial.model.records.screens import Factor
from pgtrial.model.study.factors import DRAWN, listed_factors, setup_of
from pgtrial.model.study.kinds.transactions import scripts_of_arms
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.price import Price, price_of
from pgtrial.model.study.programs import ClientKeys
from pgtrial.model.study.servers import Given, Made, Server
from pgtrial.model.study.setup import SESSION_SETTINGS
from pgtrial.model.study.shared_storage import SharedStorage, shared_storage_of
from pgtrial.model.study.spec import StudySpec, VerdictSection, is_paced, load_points

_OF_ANALYZE = "default_statistics_target"
"""A setting of sessions that changes how large a sample ANALYZE reads. If arms differ in this setting, and ANALYZE runs
on each arm's copy of the data, the arms cannot share a server."""


@dataclass(frozen=True)
class Design:
    """A study, and what follows from its study file. Each property is computed when it is first read, and then
    cached."""

    spec: StudySpec
    interleaving: Interleaving | None = None
    """The way in which the trials of a load point alternate in slices; None if each trial runs by itself, or if that is
    not decided yet. A plan may have longer slices at some load points."""

    @classmethod
    def planned(cls, spec: StudySpec, plan: Plan) -> Design:
        """Returns the design of a study that has a plan. Its trials alternate as the plan says."""
        return cls(spec, plan.interleaving)

    @property
    def load(self) -> LoadSection:
        """The section `[load]` of the study file."""
        return self.spec.load

    @property
    def verdict(self) -> VerdictSection:
        """The section `[verdict]` of the study file."""
        return self.spec.verdict

    @property
    def baseline(self) -> str:
        """The name of the baseline: the first arm, with which the others are compared."""
        return self.spec.baseline

    @cached_property
    def load_points(self) -> list[LoadPoint]:
        """The load points, in the order of the study file."""
        return load_points(self.spec)

    @cached_property
    def servers(self) -> dict[str, Server]:
        """The server of each arm, with the keys that all arms share filled in; the baseline is the first."""
        return {arm: self.spec.resolved(arm) for arm in self.spec.arms}

    @cached_property
    def factors(self) -> list[Factor]:
        """The factors of a screening study, in the order of the study file; empty for a study that compares arms."""
        return listed_factors(self.spec.factors)

    def server_at(self, levels: str) -> Server:
        """Returns the server of a screening study with these levels of its factors (`PlannedTrial.levels`)."""
        base, keys = self.servers[DRAWN], setup_of(self.spec.factors, levels)
        return base.model_copy(update={**keys, "settings": {**base.settings, **keys.get("settings", {})}})

    @cached_property
    def given(self) -> dict[str, Given]:
        """The given servers, which somebody else runs, by the names of their arms."""
        return {arm: server for arm, server in self.servers.items() if isinstance(server, Given)}

    @cached_property
    def made(self) -> dict[str, Made]:
        """The servers that pgtrial makes, by the names of their arms."""
        return {arm: server for arm, server in self.servers.items() if isinstance(server, Made)}

    @cached_property
    def copying(self) -> dict[str, Made]:
        """The servers that get a fresh copy of the data for each trial, by the names of their arms."""
        return {arm: server for arm, server in self.made.items() if server.reset == "copy"}

    @property
    def trials_of_block(self) -> int:
        """The number of trials in a block, in which every arm runs once at every load point."""
        return len(self.servers) * len(self.load_points)

    @property
    def shares_server(self) -> bool:
        """True if all arms use one server, each of them with sessions of its own that have different settings or
        clients."""
        return self.interleaving is not None and self.interleaving.shared_server

    @property
    def sessions(self) -> Mapping[str, Mapping[str, str]]:
        """The settings of each arm's sessions if all arms share one server; empty if each arm has its own server."""
        return self.possible_sessions if self.shares_server else {}

    @cached_property
    def possible_sessions(self) -> dict[str, dict[str, str]]:
        """The settings of each arm's sessions if all arms can share one server; empty if each arm needs its own server.

        Arms can share a server if they differ only in settings that a session can set, or in what their clients do.
        Identical arms get a server each, because such a study measures how much two equal servers differ. Arms that
        differ in their client programs or scripts may share a server, since the study compares these and not the
        servers. If the study defines a metric of its own, arms do not share a server, because the metric would then
        describe all arms together.
        """
        load, servers = self.load, self.servers
        base = servers[self.baseline]
        of_clients: dict[str, Any] = {
            "settings": {},
            "workload": None,
            "values": None,
            **dict.fromkeys(ClientKeys.model_fields),
        }
        without_clients = [server.model_copy(update=of_clients) for server in servers.values()]
        alike = all(server == without_clients[0] for server in without_clients)
        several = isinstance(base, Given) and len(base.dsn) > 1
        if (
            self.spec.metrics
            or not load.share_server
            or not alike
            or several
            or base.setup_sql
            or getattr(base, "extensions", None)
        ):
            return {}
        names = {name for server in servers.values() for name in server.settings}
        differing = {name for name in names if len({server.settings.get(name) for server in servers.values()}) > 1}
        of_sessions = SESSION_SETTINGS - ({_OF_ANALYZE} if self.statistics == "drawn" else set())
        has_values = any(keys.values for keys in self.spec.arms.values())
        is_of_clients = load.kind.follows_the_arm or has_values or bool(scripts_of_arms(self.spec.arms))
        if not (differing or is_of_clients) or not {name.lower() for name in differing} <= of_sessions:
            return {}
        return {
            arm: {name: value for name, value in server.settings.items() if name in differing}
            for arm, server in servers.items()
        }

    @property
    def statistics(self) -> Literal["drawn", "same", "once"]:
        """The way in which the planner's statistics of a copy of the data are made. `drawn`: by an ANALYZE of its own
        for each trial. `same`: from one sample, the same in all arms. `once`: when the data were loaded, also if no arm
        begins its trials with a fresh copy. A plan may have changed `drawn` to `once`."""
        return self.load.statistics if self.copying else "once"

    @cached_property
    def shared_storage(self) -> list[SharedStorage]:
        """The groups of arms that share places for their data, such as devices, and use them alternately. The groups
        are in the order of the arms."""
        return shared_storage_of(self.servers)

    def listed_storage(self, *arms: str) -> tuple[str, ...]:
        """Returns the places (devices or directories) in the storage lists of these arms, if all of them share the same
        places; empty otherwise."""
        return next((group.names for group in self.shared_storage if set(arms) <= set(group.arms)), ())

    @cached_property
    def layouts(self) -> dict[str, int]:
        """For each arm whose server is linked several times, each time with its code in another order in memory (a
        layout), the number of these layouts."""
        return {arm: server.layouts for arm, server in self.made.items() if server.layouts}

    @property
    def arms_by_layouts(self) -> Counter[int]:
        """The number of arms that have the same number of memory layouts, by this number of layouts. These arms draw
        their layouts from a common list."""
        return Counter(self.layouts.values())

    @cached_property
    def deployments(self) -> int:
        """The number of deployments, which are given servers of one product, that each arm names; 1 if no arm has a
        list of them.

        Raises StudyError if the arms name different numbers of deployments.
        """
        counts = {arm: len(server.dsn) if isinstance(server, Given) else 1 for arm, server in self.servers.items()}
        first, *others = counts.items()
        for other in others:
            if other[1] != first[1]:
                raise StudyError(
                    f"{marks.arm(first[0])} names {first[1]} deployments and {marks.arm(other[0])} {other[1]}; "
                    "name as many in each arm, because the deployments (servers of one product) are compared in "
                    "pairs"
                )
        return first[1]

    @cached_property
    def prices(self) -> dict[str, Price]:
        """The prices of the arms that have a price, by arm."""
        return {arm: price_of(server.price) for arm, server in self.servers.items() if server.price is not None}

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that the study compares: those that it lists, followed by the metrics that it defines itself. If
        arms have prices, the metric `transactions per cent` is added; if the study searches for a capacity, `capacity`.
        """
        kind, names = self.load.kind, self.load.kind.metrics(self.load, self.verdict.metrics)
        if own := [name for name in self.spec.own_metrics if name not in names]:
            names = [*(names or [kind.usual_metric(self.load)]), *own]
        if not self.prices or PER_CENT in names or is_paced(self.spec) or not kind.has_price:
            return names
        return [*(names or [TPS]), PER_CENT]

    @property
    def primary_metric(self) -> str | None:
        """The declared metric that the primary claims compare; None if they compare the usual measure of the load."""
        names = self.metrics
        return names[0] if names and names[0] != self.load.kind.usual_metric(self.load) else None

    @property
    def families(self) -> int:
        """The number of families (groups of claims, such as those on speed or on failures) that share the error of 5%;
        1 if each family has an error of 5% of its own."""
        if self.verdict.error == "primary":
            return 1
        beside_the_primary = (
            len(self.load_points) > 1,
            len(self.metrics) > 1,
            self.load.kind.has_family(self.load),
            len({point.clients for point in self.load_points}) > 1,
            len({point.scale for point in self.load_points}) > 1,
        )
        return 1 + sum(beside_the_primary)

    @property
    def claims(self) -> int:
        """The largest number of claims that share the error of one look (interim analysis): the primary claims, those
        on further metrics, or those on statements or queries. The more claims share the error, the more blocks are
        needed before the first look can give a verdict."""
        primary, families = len(self.factors) or max(1, len(self.servers) - 1), self.families
        secondary = (len(self.metrics) - 1) * primary
        comparisons = primary if families > 1 else 1
        parts = self.load.kind.parts(self.load) * comparisons
        return max(primary, secondary, parts) * families * (self.verdict.studies or 1)
