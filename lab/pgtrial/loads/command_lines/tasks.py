"""Builds the engine's command line for tasks: transactions of several applications, each of which has a limited number
of connections (its pool)."""

from __future__ import annotations

from pgtrial.loads.command_lines.command_line import Asked, UnlistedLine


class TasksLine(UnlistedLine):
    """Builds the command line for tasks of applications, each with a limited number of connections, its pool. One
    thread runs all tasks of an application."""

    front_end = "tasks"
    # after these executions of each statement, PostgreSQL has decided between generic and custom plans
    short_run = 6

    def options(self, asked: Asked) -> list[str]:
        threads = ["-j", str(self.threads(asked))]
        return [*asked.load.tasks.arguments(), "-M", asked.point.protocol, *threads, *asked.seeded]

    def counted_options(self, asked: Asked, transactions: int) -> list[str]:
        few = asked.load.tasks.model_copy(update={"apps": 1, "pool": 1, "tasks": transactions, "arrival": "at-once"})
        return [*few.arguments(), "-M", asked.point.protocol, "-j", "1", *asked.seeded]

    def most_threads(self, asked: Asked) -> int:
        return min(self.sessions(asked), asked.load.tasks.apps)
