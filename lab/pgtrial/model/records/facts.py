"""Types for the facts, which describe the hardware, software and settings of each arm, and for the audit, which says
how fair a comparison the facts allow."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pgtrial.model.records import FORMAT, Record, added


class FactChange(Record):
    """A fact of an arm that had changed when its study continued after a pause."""

    block: int = Field(description="The number of the block, counted from 0, before which the study continued.")
    collected: str
    key: str = Field(description="The group and the name of the fact, such as `settings.work_mem`.")
    before: Any
    now: Any


class Facts(Record):
    """The content of facts/ARM.json: the facts of an arm, which are plain JSON values by group and name."""

    format: int = FORMAT
    arm: str
    deployment: int | None = added(
        None,
        "The arm may name several servers of one product, its deployments. The number of the "
        "deployment that these facts describe, counted from 0, as in facts/ARM/NUMBER.json; None if "
        "the arm has a single server.",
    )
    collected: str
    facts: dict[str, dict[str, Any]] = Field(
        description="The values of the facts by group and name. The groups are hardware, cpu, memory, limits, "
        "os, storage, network, server, settings, defaults, sources, client and probes. An unknown "
        "value is null."
    )
    changed: list[FactChange] = added(
        [], "The facts that had changed when the study continued after a pause, the earliest change first."
    )


class Finding(Record):
    """One finding of the audit, which checks from the facts and the trials whether the comparison is fair."""

    rule: str
    severity: Literal["info", "warning", "withhold"]
    arms: list[str]
    message: str = Field(description="A sentence that says what the audit found.")
    cure: str = Field(description="A sentence that says what the user can do about the finding.")


class Audit(Record):
    """The content of facts/audit.json: the findings of the audit, which are about the fairness of the comparison."""

    format: int = FORMAT
    findings: list[Finding]
