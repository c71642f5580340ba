"""`[fleet]` of the study file: the machines that make the load."""

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
"""`continue`, `stop`, or `wait` and a duration."""


class FleetSection(Record):
    """The machines that make the load, in place of the lab's own: [many machines](many-machines.md). Needs the extra
    `pgtrial[ray]`. `--fleet ADDRESS`, `--machines N` and `--pack` of `pgtrial run`, `plan` and `compare` say the same.
    Each machine has one engine, which makes its part of the clients and of the rate; all begin at one instant. Data of
    servers elsewhere is loaded by them together as well.
    """

    engine: Literal["ray"] = Field("ray", description="What holds the machines together: a Ray cluster.")
    address: Annotated[str, AfterValidator(_known_address)] = Field(
        AUTO,
        description="`auto`: the cluster that this machine belongs to; `ray://HOST:10001`: one that it does not; "
        "`HOST:PORT`: one of several that it belongs to; `local`: one made on this machine for the run.",
    )
    machines: int | None = Field(
        None, ge=1, le=10_000, description="How many make the load; default: all that the cluster has at the start."
    )
    pack: bool = Field(
        False, description="Whether one machine may run several engines, where there are fewer machines than asked for."
    )
    on_machine_loss: MachineLoss = Field(
        "continue",
        description="What becomes of a study when a machine is lost; the trial that it was at work on has failed. "
        "`continue`: the others share its part; `wait 2min`: for so long a replacement is waited for, then the study "
        "stops; `stop`: it stops at once. A study that was stopped goes on when it is run again.",
    )

    @model_validator(mode="after")
    def _can_be_there(self) -> Self:
        if self.address == LOCAL and (self.machines or 1) > 1 and not self.pack:
            raise ValueError(
                f'"{LOCAL}" is this machine alone, and machines = {self.machines}; write pack = true (--pack) for so '
                "many engines on it, or name a cluster that has them"
            )
        return self

    @property
    def patience_s(self) -> float | None:
        """Seconds for which a replacement is waited for; None where it is not."""
        return patience_s(self.on_machine_loss)
