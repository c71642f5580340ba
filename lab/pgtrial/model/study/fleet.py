"""The section `[fleet]` of the study file: the machines that make the load."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pgtrial.model.records import Record
from pgtrial.model.units import patience_s, policy

LOCAL, AUTO = "local", "auto"

_ADDRESS = re.compile(r"(ray://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}")


def _known_address(address: str) -> str:
    if address not in (LOCAL, AUTO) and not _ADDRESS.fullmatch(address):
        raise ValueError(
            f'{address!r} is no address of a Ray cluster; write "auto" for the one that this machine belongs to, '
            '"ray://HOST:10001", or "local" for one made on this machine for the run'
        )
    return address


MachineLoss = Annotated[str, BeforeValidator(partial(policy, others=["continue", "stop"], example="wait 2min"))]
"""The reaction to the loss of a machine of the fleet: `continue`, `stop`, or `wait` and a duration."""


class FleetSection(Record):
    """[Many machines](many-machines.md) that make the load, each with its part of clients and rate. Needs the extra
    `pgtrial[ray]`. Options: `--fleet ADDRESS`, `--machines N`,
    `--share-machines`.
    """

    engine: Literal["ray"] = Field("ray", description="Ray.")
    address: Annotated[str, AfterValidator(_known_address)] = Field(
        AUTO,
        description="`auto`: this machine's cluster; `ray://HOST:10001`: another; `HOST:PORT`: one of several; "
        "`local`: one made for the run.",
    )
    machines: int | None = Field(None, ge=1, le=10_000, description="Number of machines; default: all.")
    share_machines: bool = Field(False, description="Whether a machine may run several engines.")
    on_machine_loss: MachineLoss = Field(
        "continue",
        description="`continue` with the others, `wait 2min` for a replacement, or `stop`. The trial has failed.",
    )

    @model_validator(mode="after")
    def _can_be_there(self) -> Self:
        if self.address == LOCAL and (self.machines or 1) > 1 and not self.share_machines:
            raise ValueError(
                f'"{LOCAL}" is this machine alone, and machines = {self.machines}; write share_machines = true '
                "(--share-machines) for so many engines on it, or name a cluster that has them"
            )
        return self

    @property
    def patience_s(self) -> float | None:
        """Returns how long to wait for a replacement of a lost machine, seconds; None if the policy does not wait."""
        return patience_s(self.on_machine_loss)
