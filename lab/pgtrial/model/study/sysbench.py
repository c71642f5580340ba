"""Tests of sysbench as workloads of a study: their names, the size of their tables, and further options."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.units import Setting, Whole, as_arguments

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
"""The tests that come with sysbench. The load engine has its own implementation of each."""

TABLES = 1
TABLE_SIZE = 10_000
"""The number of rows of a table by default, as in sysbench's own tests; `TABLES` is the default number of tables."""

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
"""The options of sysbench that keys of the study replace, each with the key in `[load]` that replaces it."""

_NOT_OURS = ("events", "max_requests", "rand_seed", "jsonl", "db_driver", "config_file", "help", "version", "test")
_PREPARING = ("auto_inc", "create_secondary", "secondary", "pgsql_variant")
"""Options of sysbench's own tests that change the tables. Options for random numbers, which begin with rand_, do so
too."""


def is_sysbench(workload: str) -> bool:
    """True if a workload is a test of sysbench: one that comes with sysbench, or a Lua script."""
    return workload in SYSBENCH_TESTS or workload.endswith(".lua")


def plain(option: str) -> str:
    """Returns the name of an option with underscores in place of dashes, because sysbench does not distinguish
    the two."""
    return option.replace("-", "_")


def prepares(option: str) -> bool:
    """True if an option of sysbench's own tests changes the tables that the test prepares."""
    return plain(option) in _PREPARING or plain(option).startswith("rand_")


def _passed_on(options: dict[str, str]) -> dict[str, str]:
    for option in options:
        if plain(option) in _OURS:
            raise ValueError(f"the study sets the option {option}; use the key {_OURS[plain(option)]}")
        if plain(option) in _NOT_OURS or plain(option).startswith(("mysql_", "report_")):
            raise ValueError(f"pgtrial itself sets the option {option}; remove it")
        if plain(option).startswith("pgsql_") and plain(option) != "pgsql_variant":
            raise ValueError(f"the arm sets the option {option}; use the arm's dsn")
        if not option.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"{quoted(option)} is not the name of an option; write it without -- and =")
    return options


class SysbenchSection(Record):
    """Options of sysbench's tests and of Lua scripts. pgtrial makes the tables of a test once, and measures the test
    with each number of `clients` and each `rate`. Such a test has no `scale`. `fillfactor` and `foreign_keys` are
    refused, and `warmup` must be whole seconds. pgtrial stores Lua modules in the folder of a script together with the
    script."""

    tables: Whole | None = Field(
        None, ge=1, le=100_000, description="The number of tables. Default: the default of the test, mostly 1."
    )
    table_size: Whole | None = Field(
        None, ge=1, description="The number of rows of each table. Default: the default of the test, mostly 10,000."
    )
    options: Annotated[dict[str, Setting], AfterValidator(_passed_on)] = Field(
        {},
        description='Other options of the test, by their names: `{ rand-type = "uniform", point-selects = 0 }`. '
        "`pgtrial plan` checks them.",
    )

    def arguments(self, test: str) -> list[str]:
        """Returns the options of the load engine for one test: the size of the tables if the test has one, followed by
        the other options unchanged."""
        tables, size = self.sizes(test)
        return as_arguments({"tables": tables, "table-size": size, **self.options})

    def sizes(self, test: str) -> tuple[int | None, int | None]:
        """Returns the number of tables and the number of rows in each. A number is None if the test decides it or does
        not have it."""
        if test == "bulk_insert":
            return None, None
        if test in SYSBENCH_TESTS:
            return self.tables or TABLES, self.table_size or TABLE_SIZE
        return self.tables, self.table_size
