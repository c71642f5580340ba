"""Draws the values that variables of scripts take. If arms have a variable in common, its values are drawn from the
data of the first of these arms, and pgtrial checks that the data of the others have them. An arm's own variables get
values from its own data."""

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
"""For each arm, the files from which the variables of its script take values, by the variable's name."""


@dataclass
class DrawnValues:
    """The values that variables of scripts take, for all arms.

    A variable that `[load] values` names has the same values in all arms that have no values of their own for it. These
    values are drawn from the data of the first such arm, and pgtrial checks that the data of the others have them.
    """

    spec: StudySpec
    seed: int
    folder: Path
    files: dict[str, dict[str, Path]] = field(default_factory=dict)
    """For each arm whose values were drawn, the files with its values, by the variable's name."""
    drawn: dict[str, list[str]] = field(default_factory=dict)
    """The values that arms have in common, by the variable's name."""
    common: dict[str, Path] = field(default_factory=dict)
    """The files with the values that arms have in common, by the variable's name."""
    origins: dict[str, str] = field(default_factory=dict)
    """The arm from whose data the values were drawn, by the variable's name."""
    seen: set[tuple[Hashable, str]] = field(default_factory=set)
    """Pairs of a copy of the data, by its identity, and a variable. The values of this variable were drawn from that
    copy, or pgtrial has checked that the copy has them."""

    def draw_or_check(self, arm: Arm, data: Data, target: Target) -> None:
        """Draws the values of those variables of an arm that no earlier arm has too, and checks that the arm's data
        contain the values of its other variables. Does nothing after the first call for an arm. Raises StudyError if a
        column or a value is missing."""
        if arm.name in self.files:
            return
        fresh = self.draw(arm.name, target)
        columns = self._shared(arm.name)
        loaded_data = arm.loaded(data) if columns else []
        self.seen |= {(loaded.identity, name) for loaded in loaded_data[:1] for name in fresh}
        for loaded in loaded_data:
            wanted = {name: text for name, text in columns.items() if (loaded.identity, name) not in self.seen}
            self.seen |= {(loaded.identity, name) for name in wanted}
            if not wanted:
                continue
            # `target` already serves the template; on a given server, a session of its own is opened
            served = loaded.served(self.folder / "log") if loaded.is_given else nullcontext(target)
            with served as there, there.connect_as_load() as session:
                for name, column in wanted.items():
                    check_values(session, {name: column}, self.drawn, self.origins[name], arm.name)

    def draw(self, arm: str, target: Target) -> set[str]:
        """Draws, from the arm's data, the values of those variables of an arm that no earlier arm has too. Returns the
        names of those drawn variables that other arms have as well. Raises StudyError if a column is missing or has no
        values."""
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
        """Adds the files with the values that an arm has in common with earlier arms to the files of this arm."""
        shared = {name: self.common[name] for name in self._shared(arm)}
        self.files[arm] = shared | self.files.get(arm, {})

    def draws_on(self, arm: str) -> bool:
        """True if values have to be drawn from the data of this arm: it has values of its own, or no earlier arm has
        the values that it shares."""
        return bool(self.spec.arms[arm].values) or not self._shared(arm).keys() <= self.drawn.keys()

    def _shared(self, arm: str) -> dict[str, str]:
        """Returns the columns from which the variables that an arm has in common with other arms take values, by the
        variable's name."""
        own = self.spec.arms[arm].values or {}
        return {name: column for name, column in self.spec.load.values.items() if name not in own}
