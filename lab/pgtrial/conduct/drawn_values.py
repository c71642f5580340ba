"""The values that variables of scripts get: those that arms have in common are drawn from the data of the first arm and
looked for on all others, and an arm's own are drawn from its own data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.loads.data.data import Data
from pgtrial.loads.sampled_values import check_values, draw_values, write_values
from pgtrial.loads.target import Target
from pgtrial.model import marks
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Arm

ValuesOfArms = Mapping[str, Mapping[str, Path]]
"""For each arm the files from which variables of its script take values, by variable."""


@dataclass
class DrawnValues:
    """The values that variables of scripts take. A variable that `[load] values` names, and no key of the arm, has the
    same values in all such arms. They are drawn from the data of the first of them, and the others are checked to have
    them."""

    spec: StudySpec
    seed: int
    folder: Path
    files: dict[str, dict[str, Path]] = field(default_factory=dict)
    """For each arm that was seen, the files with its values, by variable."""
    drawn: dict[str, list[str]] = field(default_factory=dict)
    """The values that arms have in common, by variable."""
    common: dict[str, Path] = field(default_factory=dict)
    """The files with these values."""
    origins: dict[str, str] = field(default_factory=dict)
    """The arm from whose data the values were drawn, by variable."""
    seen: set[tuple[Hashable, str]] = field(default_factory=set)
    """The identities of places and the variables whose values the data there have, or are being checked to have."""

    def draw_or_check(self, arm: Arm, data: Data, target: Target) -> None:
        """Draws the values of an arm that no earlier arm has drawn, and checks that its data have the others. Only the
        first call for each arm does anything. Raises StudyError if a column or a value is missing."""
        if arm.name in self.files:
            return
        fresh = self.draw(arm.name, target)
        columns = self._shared(arm.name)
        places = arm.loaded(data) if columns else []
        self.seen |= {(place.identity, name) for place in places[:1] for name in fresh}
        for place in places:
            wanted = {name: text for name, text in columns.items() if (place.identity, name) not in self.seen}
            self.seen |= {(place.identity, name) for name in wanted}
            if not wanted:
                continue
            # the template is already served, or the first one of several given servers
            served = place.served(self.folder / "log") if place.is_given else nullcontext(target)
            with served as there, there.connect_as_load() as session:
                for name, column in wanted.items():
                    check_values(session, {name: column}, self.drawn, self.origins[name], arm.name)

    def draw(self, arm: str, target: Target) -> set[str]:
        """Draws the values of an arm that no earlier arm has drawn, from its data. Returns the variables among them
        that arms have in common. Raises StudyError if a column is missing or has no values."""
        own = self.spec.arms[arm].values or {}
        fresh = {name: column for name, column in self._shared(arm).items() if name not in self.drawn}
        if own or fresh:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            as_text = self.spec.load.protocol == "simple"
            with target.connect_as_load() as session:
                drawn = draw_values(session, fresh, self.seed)
                self.common |= write_values(session, fresh, drawn, self.folder, as_text=as_text)
                self.drawn |= drawn
                of_arm = draw_values(session, own, self.seed, where=f"{marks.at_arm(arm)}values")
                folder = self.folder / str(list(self.spec.arms).index(arm))
                folder.mkdir(mode=0o700, exist_ok=True)
                self.files[arm] = write_values(session, own, of_arm, folder, as_text=as_text)
        self.origins |= dict.fromkeys(fresh, arm)
        self.share(arm)
        return set(fresh)

    def share(self, arm: str) -> None:
        """Gives an arm the values that it has in common with earlier arms."""
        shared = {name: self.common[name] for name in self._shared(arm)}
        self.files[arm] = shared | self.files.get(arm, {})

    def draws_on(self, arm: str) -> bool:
        """True if values have to be drawn from the data of this arm, since no earlier arm has them."""
        return bool(self.spec.arms[arm].values) or not self._shared(arm).keys() <= self.drawn.keys()

    def _shared(self, arm: str) -> dict[str, str]:
        """Returns the columns of the variables whose values an arm has in common with others."""
        own = self.spec.arms[arm].values or {}
        return {name: column for name, column in self.spec.load.values.items() if name not in own}
