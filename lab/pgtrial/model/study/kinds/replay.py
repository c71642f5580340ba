"""The load of a study that is a replay: it runs the recorded sessions of a capture, on data that pgtrial restores from
a dump."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.study.kinds.kind import Asked, LoadKind, misplaced
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.replay import MOST_STATEMENTS, NOT_FOR_REPLAYS, REPLAY, ReplaySection, is_replay


class Replay(LoadKind):
    """One replay of the capture in each trial. The study has a single load point."""

    stored = ReplayLoad
    why_no_turns = "the recorded times of a replay would pass during the slices of the other arms"
    why_no_fleet = "one engine replays all sessions, so several machines cannot share the load"
    why_no_instructions = "a replay has no single transaction that could be repeated"
    is_rehearsed = False
    has_plans = False
    has_data_of_known_size = True
    has_known_sql = False
    is_of_the_user = True
    has_planned_time = False

    def is_meant(self, load: LoadKeys) -> bool:
        return any(map(is_replay, load.workload))

    def own_end(self, load: LoadKeys) -> ReplaySection:
        return load.replay

    def objections(self, load: LoadKeys) -> Iterator[str]:
        if self.is_meant(load):
            if len(load.workload) > 1:
                yield "a replay has data of its own and is judged by itself; give the replay a study of its own"
            yield from misplaced(load, NOT_FOR_REPLAYS, "a replay")
            if load.replay.data is None and not load.data:
                yield (
                    f"a replay needs {marks.key('load.replay', 'data')}: a dump (pg_dump) of the data as they were "
                    "when the capture began"
                )
        elif load.replay != ReplaySection():
            replay = marks.short_key("load", "replay")
            yield f"{replay} is for the workload replay:DIRECTORY; set this workload, or remove {replay}"

    def objections_to_data(self, load: LoadKeys) -> Iterator[str]:
        if load.data and load.replay.data is not None:
            data, of_replay = marks.short_key("load", "data"), marks.short_key("load", "replay.data")
            yield f"{data} and {of_replay} both name the data of the replay; leave one of the two keys out"

    def is_paced(self, load: LoadKeys) -> bool:
        return load.replay.factor is not None

    def points(self, study: Asked) -> list[LoadPoint]:
        load, asked = study.load, study.load.replay
        if asked.files is None or asked.data is None:
            raise StudyError(
                "the study does not name the files of its capture and dump; read the study from its study file"
            )
        capture = PurePosixPath(load.workload[0].removeprefix(REPLAY)).name
        replay = ReplayLoad(
            capture=capture,
            data=PurePosixPath(asked.data).name,
            **asked.files.model_dump(include={"capture_sha256", "data_sha256", "sessions", "statements"}),
            speed=asked.factor,
            sample=asked.sample,
            copies=asked.copies,
        )
        point = LoadPoint(
            workload=f"{REPLAY}{capture}",
            scale=1,
            clients=asked.max_connections or 1,
            protocol="as recorded",
            replay=replay,
        )
        return [point]

    def has_family(self, load: LoadKeys) -> bool:
        return True

    def parts(self, load: LoadKeys) -> int:
        return MOST_STATEMENTS
