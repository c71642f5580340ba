"""The values that variables of scripts get: drawn from the data of the first arm, and looked for on all others."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pgtrial.loads.data.data import Data
from pgtrial.loads.sampled_values import check_values, draw_values, write_values
from pgtrial.loads.target import Target
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Arm


@dataclass
class DrawnValues:
    """The values that variables of scripts take. They are drawn from the tables of the first arm whose data are read.
    Arms that may have other rows are checked to have the same values."""

    spec: StudySpec
    seed: int
    folder: Path
    files: dict[str, Path] = field(default_factory=dict)
    drawn: dict[str, list[str]] = field(default_factory=dict)
    origin: tuple[Data, str] | None = None
    """The data and the arm from which the values were drawn; None before that."""
    seen: set[Hashable] = field(default_factory=set)
    """The identities of the places whose data have the values: those from which the values were drawn, and those that
    were checked or are being checked."""

    def draw_or_check(self, arm: Arm, data: Data, target: Target) -> None:
        """Draws the values from the data of the first arm for which this is called. For each later arm, checks that its
        data have these values. Raises StudyError if some are missing."""
        columns = self.spec.load.values
        if not columns or (self.origin is not None and self.origin[0] != data):
            return
        places = arm.loaded(data)
        if self.origin is None:
            self.origin = data, arm.name
            self.folder.mkdir(mode=0o700, exist_ok=True)
            as_text = self.spec.load.protocol == "simple"
            with target.connect_as_load() as session:
                self.drawn = draw_values(session, columns, self.seed)
                self.files = write_values(session, columns, self.drawn, self.folder, as_text=as_text)
            self.seen.add(places[0].identity)
        for place in places:
            if place.identity not in self.seen:
                self.seen.add(place.identity)
                # the template is already served, or the first one of several given servers
                served = place.served(self.folder / "log") if place.is_given else nullcontext(target)
                with served as there, there.connect_as_load() as session:
                    check_values(session, columns, self.drawn, self.origin[1], arm.name)
