"""The section `[fleet]` of the study file: the machines that make the load together."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.units import Whole, patience_s, policy

LOCAL, AUTO = "local", "auto"

_ADDRESS = re.compile(r"(ray://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}")


def _known_address(address: str) -> str:
    if address not in (LOCAL, AUTO) and not _ADDRESS.fullmatch(address):
        raise ValueError(
            f'{quoted(address)} is not the address of a Ray cluster; write "auto" for the one that this machine '
            'belongs to, "ray://HOST:10001", or "local" for one made on this machine for the run'
        )
    return address


MachineLoss = Annotated[str, BeforeValidator(partial(policy, others=["continue", "stop"], example="wait 2min"))]
"""The reaction to the loss of a machine of the fleet. `continue`: the study goes on with the other machines. `stop`:
the study stops. `wait` and a duration: the study waits up to this time for a replacement."""


class FleetSection(Record):
    """[Several machines](many-machines.md) that make the load together, each with a share of the clients and of the
    rate. It needs the extra `pgtrial[ray]`. On the command line: `--fleet ADDRESS`, `--machines N`, `--share-machines`.
    """

    engine: Literal["ray"] = Field("ray", description="The software that connects the machines.")
    address: Annotated[str, AfterValidator(_known_address)] = Field(
        AUTO,
        description="The Ray cluster. `auto`: the cluster to which this machine belongs. `ray://HOST:10001`: a "
        "cluster on other machines. `HOST:PORT`: one of several clusters to which this machine belongs. `local`: a "
        "cluster on this machine, which pgtrial makes for the run.",
    )
    machines: Whole | None = Field(
        None,
        ge=1,
        le=10_000,
        description="The number of machines that make the load. Default: all machines of the cluster.",
    )
    share_machines: bool = Field(False, description="True to allow several load engines on one machine.")
    on_machine_loss: MachineLoss = Field(
        "continue",
        description="What happens when a machine is lost. The trial in progress has failed in each case. "
        "`continue`: the study goes on with the other machines. `wait 2min`: the study waits up to this time for a "
        "replacement. `stop`: the study stops.",
    )

    @model_validator(mode="after")
    def _can_be_there(self) -> Self:
        if self.address == LOCAL and (self.machines or 1) > 1 and not self.share_machines:
            raise ValueError(
                f'"{LOCAL}" is this machine alone, and machines = {self.machines}; write share_machines = true '
                "(--share-machines) to run so many load engines on it, or name a cluster with so many machines"
            )
        return self

    @property
    def patience_s(self) -> float | None:
        """Returns how many seconds the study waits for a replacement of a lost machine; None if it does not wait."""
        return patience_s(self.on_machine_loss)
