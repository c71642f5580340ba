"""Types for the machines on which each piece of a study is to run, and on which it ran. Clock offsets and round trips
are in microseconds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record, added


class ServerHost(Record):
    """The host of a server as the study names it. No name is resolved and no host is contacted to find it out."""

    label: str = Field(description="`this machine`, `user@host` as ssh takes it, or how a given server is named.")
    by: Literal["this machine", "ssh", "dsn"] = Field(description="How the lab comes by it.")
    address: str | None = Field(
        None, description="Where the load reaches it, as far as the study says; of a socket its directory."
    )
    data: str | None = Field(None, description="By ssh: the folder on the host in which all of pgtrial is.")
    looked_at: str | None = added(
        None, "Of a given server: the login by which its host is looked at; nothing is made there."
    )


class MachineShare(Record):
    """The share of one machine of a fleet in a trial's load. Values are None if the machine was lost before it reported
    them."""

    machine: str
    address: str = Field(description="Where the fleet reaches it.")
    with_lab: bool | None = added(
        None, "Whether the lab's own machine has it, or it is that; None for trials older than this record."
    )
    round_trip_us: float | None = added(
        None, "From it to the server, before the load: median of 7 TCP connects; None: a Unix socket, or older."
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


class ServerPlace(Record):
    """The host of an arm's server, and the network path from the lab to it. None means that a value is not known."""

    arm: str
    host: str = Field(description="As the study names it; several deployments with commas.")
    by: Literal["this machine", "ssh", "dsn"]
    address: str | None
    looked_at: str | None = added(None, "Of a given server: the login by which its host was looked at.")
    system: str | None = Field(description="Distribution and kernel.")
    with_lab: bool | None = Field(description="Whether it is the lab's own machine.")
    path: str | None = Field(description="unix socket, loopback, own address, network.")
    interface: str | None = Field(description="The lab's network device of the route.")
    mtu: int | None
    tls: str | None
    trials: int = Field(description="Trials before which the round trip was measured.")
    round_trip_us: float | None = Field(description="Of a SELECT 1: the median over these trials of each one's median.")
    round_trip_lowest_us: float | None
    round_trip_highest_us: float | None
    bandwidth_mb_s: float | None = Field(description="From the server to the lab, 10^6 bytes, measured once.")
    clock_offset_us: float | None = Field(description="The host's clock less the lab's.")
    clock_offset_error_us: float | None


class MachinePart(Record):
    """The part of one machine of the fleet in the load, over all trials in which it took part. None means that a value
    is not known."""

    machine: str
    address: str | None
    with_lab: bool | None = added(None, "Whether the lab's own machine has it, or it is that.")
    trials: int
    lost: int = Field(description="Trials in which it was lost.")
    clients: int | None = Field(description="At most, at one time.")
    transactions: int
    share: float | None = Field(description="Of all transactions of these trials.")
    tps: float | None = Field(description="Of the median trial; its load points are mixed.")
    speed: float | None = Field(
        description="Transactions per second and client, by those of the trial's median machine: the median over the "
        "trials. None where it was alone."
    )
    slower_by: float | None = Field(
        description="Of a slow machine: how far its speed is below the others' median, as a share; None: it is not."
    )
    cpu_per_transaction_us: float | None
    busiest_thread_share: float | None = Field(description="Of the trial in which it was highest.")
    lag_p99_us: float | None = Field(description="Of the trial in which it was highest; None in a closed loop.")
    start_skew_us: float | None = Field(description="How much later than planned it began, the furthest from nought.")
    clock_offset_us: float | None = Field(description="Its clock less the lab's: the median over the trials.")
    offset_error_us: float | None = Field(description="The largest of these trials.")


class MachineWay(Record):
    """The network path from one machine of the fleet to one arm's server, measured by TCP connects before the
    trials."""

    machine: str
    arm: str
    trials: int = Field(description="Trials before which it was measured.")
    round_trip_us: float = Field(description="The median over these trials of each one's median.")
    round_trip_lowest_us: float
    round_trip_highest_us: float


class WhereItRan(Record):
    """The machines on which a study ran and what each of them did, if there is more than one."""

    lab: str | None = Field(description="System of the lab's machine; None: not known.")
    load: Literal["lab", "fleet"] = Field(description="What made the load.")
    servers: list[ServerPlace]
    machines: list[MachinePart] = Field([], description="Of the fleet, in the order in which they first took part.")
    ways: list[MachineWay] = added(
        [], "From each machine of the fleet to each server; empty: by Unix sockets, or not known."
    )
