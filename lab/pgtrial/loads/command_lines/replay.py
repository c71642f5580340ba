"""Builds the engine's command line for a replay, in which recorded sessions run again."""

from __future__ import annotations

from pgtrial.loads.command_lines.command_line import Asked, CommandLine
from pgtrial.store.replay_files import capture_of


class ReplayLine(CommandLine):
    """Builds the command line for a replay, which runs the recorded sessions of a capture again."""

    front_end = "replay"

    def options(self, asked: Asked) -> list[str]:
        capture, threads = str(capture_of(asked.load.workload[0])), ["-j", str(self.threads(asked))]
        return [capture, *asked.load.replay.arguments(), *threads, *asked.seeded]

    def sessions(self, asked: Asked) -> int:
        """Returns the study's limit for connections or, if it has none, the number of recorded sessions. Fewer sessions
        may be open at the same time, but only the engine knows how many."""
        replay, most = asked.point.replay, asked.load.replay.max_connections
        return most or (replay.sessions * replay.copies if replay is not None else asked.point.clients)
