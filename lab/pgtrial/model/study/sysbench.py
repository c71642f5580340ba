"""Tests of sysbench as workloads of a study: their names, the size of their tables, and further options."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.units import Setting, as_arguments

SYSBENCH_TESTS = (
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    "bulk_insert",
    "select_random_points",
    "select_random_ranges",
)
"""sysbench's own tests, which the engine has natively."""

TABLES = 1
TABLE_SIZE = 10_000
"""sysbench's defaults for its own tests."""

_OURS = {
    "threads": "clients",
    "num_threads": "clients",
    "time": "duration",
    "max_time": "duration",
    "warmup_time": "warmup",
    "rate": "rate",
    "tx_rate": "rate",
    "jobs": "threads",
    "db_ps_mode": "protocol",
    "tables": "sysbench.tables",
    "table_size": "sysbench.table_size",
}
"""The options of sysbench that keys of the study replace, each with that key."""

_NOT_OURS = ("events", "max_requests", "rand_seed", "jsonl", "db_driver", "config_file", "help", "version", "test")
_PREPARING = ("auto_inc", "create_secondary", "secondary", "pgsql_variant")
"""Options of sysbench's own tests that shape the tables, besides those of the random numbers."""


def is_sysbench(workload: str) -> bool:
    """True if a workload is a test of sysbench: one that comes with sysbench, or a Lua script."""
    return workload in SYSBENCH_TESTS or workload.endswith(".lua")


def plain(option: str) -> str:
    """Returns an option's name with underscores in place of dashes, which sysbench takes as equal."""
    return option.replace("-", "_")


def prepares(option: str) -> bool:
    """True if an option of sysbench's own tests concerns the tables that they prepare."""
    return plain(option) in _PREPARING or plain(option).startswith("rand_")


def _passed_on(options: dict[str, str]) -> dict[str, str]:
    for option in options:
        if plain(option) in _OURS:
            raise ValueError(f"{option} is the study's to say; use the key {_OURS[plain(option)]}")
        if plain(option) in _NOT_OURS or plain(option).startswith(("mysql_", "report_")):
            raise ValueError(f"{option} is for pgtrial itself to choose; remove it")
        if plain(option).startswith("pgsql_") and plain(option) != "pgsql_variant":
            raise ValueError(f"{option} is the arm's to say; use its dsn")
        if not option.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"{option!r} is not the name of an option; write it without -- and =")
    return options


class SysbenchSection(Record):
    """Options of sysbench's tests and of Lua scripts. The tables of a test are made once, and the test is measured with
    each number of `clients` and each `rate`; it has no `scale`. `fillfactor` and `foreign_keys` are refused, and
    `warmup` must be whole seconds. Lua modules in the folder of a script are stored with it.
    """

    tables: int | None = Field(
        None, ge=1, le=100_000, description="The number of tables. Default: that of the test, mostly 1."
    )
    table_size: int | None = Field(
        None, ge=1, description="The number of rows of each table. Default: that of the test, mostly 10,000."
    )
    options: Annotated[dict[str, Setting], AfterValidator(_passed_on)] = Field(
        {},
        description='Other options of the test, by their names: `{ rand-type = "uniform", point-selects = 0 }`. '
        "`pgtrial plan` checks them.",
    )

    def arguments(self, test: str) -> list[str]:
        """Returns the engine's options for one test: the size of the tables where it has one, then the other options
        unchanged."""
        tables, size = self.sizes(test)
        return as_arguments({"tables": tables, "table-size": size, **self.options})

    def sizes(self, test: str) -> tuple[int | None, int | None]:
        """Returns the number of tables and the rows of each; None where the test decides, or has no such number."""
        if test == "bulk_insert":
            return None, None
        if test in SYSBENCH_TESTS:
            return self.tables or TABLES, self.table_size or TABLE_SIZE
        return self.tables, self.table_size
