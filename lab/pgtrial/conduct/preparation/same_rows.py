"""Compares the rows of the user's data on all arms before the first trial, if they may differ.

Rows that are the same by construction are not read: those of arms that share a template or a given server, and those of
tables that pgtrial itself fills. The rows of a template are read once, and their digests are stored beside it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.conduct.preparation.rehearsal import as_study_error
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.loads.data.data import Data
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.data.table_rows import (
    Keys,
    Table,
    read_as_whole,
    rows_of,
    sample_keys,
    tables_of,
)
from pgtrial.loads.target import Session
from pgtrial.model import marks
from pgtrial.model.records.facts import Facts, Finding
from pgtrial.model.records.plan import Plan
from pgtrial.model.records.rows import TableRows
from pgtrial.model.study.design import Design
from pgtrial.model.study.packs import DATA, SCHEMA
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import plural
from pgtrial.servers.arm import Arm, Needs
from pgtrial.servers.loaded_data import LoadedData
from pgtrial.store.machine_key import digest_here
from pgtrial.store.temporary import temporary_folder
from pgtrial.verdict.rules.case import Case
from pgtrial.verdict.rules.rows import unequal_data, why_not_compared

_TOO_LARGE = "it is too large to read all rows, and has no primary key by which pgtrial could look up some of them"

ArmRows = dict[tuple[str, int], dict[str, TableRows]]
"""Counts and digests of the rows of each table, by arm and number of the deployment (0 if the arm has a single
server)."""


def rows_of_arms(design: Design, arms: Mapping[str, Arm], seed: int, listener: Listener) -> ArmRows:
    """Returns counts and digests of the rows of the user's data on each arm. Arms whose rows are the same by
    construction are left out.

    `listener` gets messages on which tables are read, and how long that took. Raises StudyError and ArmError.
    """
    found: ArmRows = {}
    needs = Needs.of(design)
    all_data = needs.data
    texts = _texts(design.spec)
    for data in all_data:
        having = [arm for arm in arms.values() if data in needs.of_arm(arm.name)]
        loaded_data = [(arm.name, loaded) for arm in having for loaded in arm.loaded(data) if _is_read(data, loaded)]
        distinct = {loaded.identity: loaded for _, loaded in loaded_data}
        if len(distinct) < 2:
            continue
        owners = {loaded.identity: arm for arm, loaded in reversed(loaded_data)}
        rows = _Reading(data, texts, seed, owners, listener).read(list(distinct.values()))
        for arm, loaded in loaded_data:
            of_arm = found.setdefault((arm, loaded.deployment or 0), {})
            for table, one in rows[loaded.identity].items():
                of_arm[f"{data.label}: {table}" if len(all_data) > 1 else table] = _hidden(table, one)
    return found


def as_facts(rows: Mapping[str, TableRows]) -> dict[str, Any]:
    """Returns counts and digests of rows, by table, in the form in which they are stored as facts of an arm."""
    return {table: one.model_dump(exclude_defaults=True) for table, one in rows.items()}


def findings_on_rows(plan: Plan, rows: ArmRows) -> list[Finding]:
    """Returns the findings on these rows that the audit, the check whether the comparison is fair, will have when the
    facts of all arms are complete."""
    deployments = {
        arm: [
            Facts(
                arm=arm, deployment=number if plan.deployments > 1 else None, collected="", facts={"data": as_facts(of)}
            )
            for (name, number), of in sorted(rows.items())
            if name == arm
        ]
        for arm in plan.arms
    }
    known = {arm: facts for arm, facts in deployments.items() if facts}
    case = Case(plan, {arm: facts[0] for arm, facts in known.items()}, deployments=known)
    return [finding for finding, _ in unequal_data.findings(case)]


def as_warning(finding: Finding) -> str:
    """Returns the message of a finding that withholds the verdict, for a user whose study still runs."""
    return f"there will be no verdict: {marks.stored(f'{finding.message} {finding.cure}')}"


def _texts(spec: StudySpec) -> list[str]:
    """Returns texts in which the names of the tables occur that the load uses on a given server: its scripts, and the
    names of tables from which variables take values."""
    if not spec.load.kind.has_known_sql:
        return []
    made = tuple(f"/{file}" for file in (SCHEMA, DATA))
    scripts = [text for name, text in spec.scripts.items() if not name.endswith(made)]
    return [*scripts, *(column.rpartition(".")[0] for arm in spec.arms for column in spec.values_of(arm).values())]


def _is_read(data: Data, loaded: LoadedData) -> bool:
    return data.has_users_rows or loaded.is_given


def _hidden(table: str, rows: TableRows) -> TableRows:
    """Returns the rows with keyed digests in place of the plain ones, so that nobody without this machine's key can
    check guesses of the values."""
    columns = {name: digest_here(f"{table}.{name}", digest) for name, digest in rows.columns.items()}
    digest = None if rows.digest is None else digest_here(table, rows.digest)
    return rows.model_copy(update={"digest": digest, "columns": columns})


@dataclass
class _Reading:
    """Reads the rows of one set of data from all its copies: templates, or given servers. The first copy decides which
    tables are read, and whether completely or only a sample of rows."""

    data: Data
    texts: Sequence[str]
    seed: int
    owners: Mapping[Hashable, str]
    """For each copy of the data, by its identity, the first arm that has it."""
    listener: Listener
    keys: dict[str, Keys | None] | None = None
    """The way in which each table is compared, by the table's name. The value is None if all rows are read; the keys by
    which some rows are looked up if the table is large; or () if the table is not compared.

    The attribute itself is None until the first copy has been read.
    """

    def read(self, loaded_data: Sequence[LoadedData]) -> dict[Hashable, dict[str, TableRows]]:
        """Reads the rows of these copies of the data. Returns counts and digests by the identity of the copy, then by
        table. For tables that differ, also digests of each column."""
        rows = {loaded.identity: self._of_loaded(loaded) for loaded in loaded_data}
        odd = {
            label for label in self.keys or () if len({_whole(of_loaded.get(label)) for of_loaded in rows.values()}) > 1
        }
        for loaded in loaded_data if odd else ():
            by_column = self._read(loaded, odd, by_column=True)
            for label, found in by_column.items():
                of_loaded = rows[loaded.identity]
                of_loaded[label] = of_loaded[label].model_copy(update={"columns": found.columns})
        return rows

    def _of_loaded(self, loaded: LoadedData) -> dict[str, TableRows]:
        known = loaded.known_rows()
        if self.keys is None and known and all(map(_is_whole, known.values())):
            self.keys = dict.fromkeys(known)
        wanted = {
            label
            for label, keys in (self.keys or {}).items()
            if keys or (keys is None and not _is_whole(known.get(label)))
        }
        if self.keys is not None and not wanted:
            rows = dict(known)
        else:
            rows = {**known, **self._read(loaded, wanted, by_column=False)}
            loaded.keep_rows({label: found if _is_whole(found) else TableRows() for label, found in rows.items()})
        too_large = {label: TableRows(unread=_TOO_LARGE) for label, keys in (self.keys or {}).items() if keys == ()}
        return {label: one for label in self.keys or () if (one := too_large.get(label) or rows.get(label)) is not None}

    def _read(self, loaded: LoadedData, labels: Collection[str], *, by_column: bool) -> dict[str, TableRows]:
        """Reads the rows of the tables `labels` in one copy of the data. If it is the first copy, `labels` is ignored,
        and all its tables are read. With `by_column`, returns digests of each column."""
        arm, began = self.owners[loaded.identity], time.monotonic()
        with (
            as_study_error(arm),
            temporary_folder() as logs,
            loaded.served(logs / "log") as target,
            target.for_load.connect() as session,
        ):
            tables = tables_of(session, self.data, self.texts)
            if self.keys is None:
                self.keys = self._planned(session, tables)
                labels = self.keys
            keys = self.keys
            chosen = [table for table in tables if table.label in labels and keys[table.label] != ()]
            if not chosen:
                return {}
            size = sum(table.bytes_on_disk for table in chosen) / 1e6
            what = f"{'columns' if by_column else 'rows'} of {plural(len(chosen), 'table')} of {size:,.0f} MB"
            compared = "to compare them with those of the other arms"
            self.listener(Preparing(f"{arm}: reading the {what}, {compared}"))
            is_lua = loaded.is_given and isinstance(
                self.data, SysbenchTables
            )  # the full names of tables do not occur in sysbench's Lua scripts
            rows = {
                table.label: rows_of(session, table, keys[table.label], by_column=by_column).model_copy(
                    update={
                        "changed_by_load": is_lua or (loaded.is_given and table.is_changed),
                        "estimate": table.tuples if keys[table.label] and table.tuples > 0 else None,
                    }
                )
                for table in chosen
            }
            self.listener(Preparing(f"{arm}: read the {what} in {time.monotonic() - began:.1f}s"))
            for label, found in () if by_column else rows.items():
                if (reason := why_not_compared(found)) is not None:
                    self.listener(Preparing(f"{arm}: the rows of {label} are not compared: {reason}", stays=True))
        return rows

    def _planned(self, session: Session, tables: Sequence[Table]) -> dict[str, Keys | None]:
        """Decides how each table is compared, and tells the listener which tables are not read completely."""
        planned: dict[str, Keys | None] = dict.fromkeys(table.label for table in read_as_whole(tables))
        for table in tables:
            if table.label not in planned:
                planned[table.label] = keys = sample_keys(session, table, self.seed) or ()
                how = f"by {len(keys[0]):,} keys" if keys else "not at all, since the table has no primary key"
                size = table.bytes_on_disk / 1e6
                text = f"the rows of the table {table.label} ({size:,.0f} MB) are compared {how}"
                self.listener(Preparing(text, stays=True))
        return planned


def _is_whole(rows: TableRows | None) -> bool:
    """True if all rows were read."""
    return rows is not None and rows.digest is not None and not rows.sample


def _whole(rows: TableRows | None) -> tuple[int | None, str | None] | None:
    """Returns the values by which a table is compared between two copies of the data: the number of its rows and their
    digest. Returns None if a copy does not have the table."""
    return None if rows is None else (rows.rows, rows.digest)
