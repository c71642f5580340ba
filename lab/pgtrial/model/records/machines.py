"""The machines of a study: where each arm's server is, and what each of the fleet did of a load."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record, added


class ServerHost(Record):
    """Where the study says that a server is; nothing is resolved or reached to know it."""

    label: str = Field(description="`this machine`, `user@host` as ssh takes it, or how a given server is named.")
    by: Literal["this machine", "ssh", "dsn"] = Field(description="How the lab comes by it.")
    address: str | None = Field(
        None, description="Where the load reaches it, as far as the study says; of a socket its directory."
    )
    data: str | None = Field(None, description="By ssh: the folder on the host in which all of pgtrial is.")
    looked_at: str | None = added(
        None,
        "Of a given server: the login by which its host is looked at; nothing is made there.",
    )


class MachineShare(Record):
    """What one machine of a fleet did of a trial's load. None: it did not live to tell."""

    machine: str
    address: str = Field(description="Where the fleet reaches it.")
    with_lab: bool | None = added(
        None,
        "Whether the lab's own machine has it, or it is that; None for trials older than this record.",
    )
    round_trip_us: float | None = added(
        None,
        "From it to the server, before the load: median of 7 TCP connects; None: a Unix socket, or older.",
    )
    clients: int | None = None
    transactions: int | None = None
    tps: float | None = None
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    busiest_thread_share: float | None = Field(None, description="CPU time of its busiest thread / wall time.")
    lag_p99_us: float | None = Field(None, description="With a rate: from the scheduled to the actual start.")
    status: int | None = Field(None, description="Exit status of its engine.")
    began_at: float | None = Field(None, description="When its first phase began, Unix seconds of its own clock.")
    clock_offset_us: float = Field(description="Its clock less the lab's, measured before the load.")
    offset_error_us: float = Field(description="By how much the offset may be wrong: half a round trip.")
    start_skew_us: float | None = Field(
        None, description="From the instant at which all were to begin until it did, by the lab's clock."
    )
