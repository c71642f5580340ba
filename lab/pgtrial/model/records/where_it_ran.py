"""Types for the machines on which the load and the servers of a study should run, and on which they ran. Clock offsets
and round trips are in microseconds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pgtrial.model.records import Record, added


class ServerHost(Record):
    """The host of a server, as the study file names it. pgtrial resolves no name and contacts no host to fill in this
    record."""

    label: str = Field(
        description="The name of the host: `this machine`, `user@host` for a host that is reached by ssh, or "
        "the name of the server if somebody else runs it."
    )
    by: Literal["this machine", "ssh", "dsn"] = Field(
        description="How pgtrial got the server: it makes the server on this machine or by ssh, or a connection "
        "string (`dsn`) names it."
    )
    address: str | None = Field(
        None,
        description="The address at which the load reaches the server, if the study file has it; for a Unix socket "
        "its directory.",
    )
    data: str | None = Field(None, description="With ssh: the folder on the host in which pgtrial keeps everything.")
    looked_at: str | None = added(
        None,
        "The login with which pgtrial reads facts from the host of a server that somebody else "
        "runs. pgtrial makes nothing on this host.",
    )


class MachineShare(Record):
    """The contribution of one of several machines to the load of a trial. Values are None if the machine was lost
    before it reported them."""

    machine: str
    address: str = Field(
        description="The address at which Ray, which connects the machines of the load, reaches the machine."
    )
    with_lab: bool | None = added(
        None, "True if the machine is that of pgtrial, or runs on it; None for trials that are older than this field."
    )
    round_trip_us: float | None = added(
        None,
        "The median time of 7 TCP connects from the machine to the server before the load; None for "
        "a Unix socket and for older trials.",
    )
    clients: int | None = None
    transactions: int | None = None
    tps: float | None = None
    cpu_user_s: float | None = None
    cpu_system_s: float | None = None
    busiest_thread_share: float | None = Field(
        None,
        description="The CPU time of the busiest thread of the load engine on this machine, divided by the wall time.",
    )
    lag_p99_us: float | None = Field(
        None,
        description="For loads with a rate: the 99th percentile of the delay from the scheduled to the actual start "
        "of a transaction.",
    )
    status: int | None = Field(None, description="The exit status of the load engine on the machine.")
    began_at: float | None = Field(
        None,
        description="The time at which the first phase of the load began on the machine, in Unix seconds of its "
        "own clock.",
    )
    clock_offset_us: float = Field(
        description="The difference of the machine's clock from that of pgtrial's machine, measured before the load."
    )
    offset_error_us: float = Field(description="The possible error of the clock offset, which is half a round trip.")
    start_skew_us: float | None = Field(
        None,
        description="The delay of the machine's start after the planned common start, by the clock of pgtrial's "
        "machine.",
    )


class ServerLocation(Record):
    """The host of an arm's server, and the network path to it from the machine of pgtrial. None means that a value is
    not known."""

    arm: str
    host: str = Field(
        description="The host, as the study names it. If the arm names several servers of one product, their "
        "hosts are separated by commas."
    )
    by: Literal["this machine", "ssh", "dsn"]
    address: str | None
    looked_at: str | None = added(
        None, "The login with which pgtrial read facts from the host of a server that somebody else runs."
    )
    system: str | None = Field(description="The distribution and the kernel of the host.")
    with_lab: bool | None = Field(description="True if the host is the machine on which pgtrial runs.")
    path: str | None = Field(description="The kind of network path: unix socket, loopback, own address or network.")
    interface: str | None = Field(description="The network device of pgtrial's machine on the route to the host.")
    mtu: int | None
    tls: str | None
    trials: int = Field(description="The number of trials before which pgtrial measured the round trip to the server.")
    round_trip_us: float | None = Field(
        description="The time of a SELECT 1, measured several times before a trial: the median over the trials "
        "of each trial's median."
    )
    round_trip_lowest_us: float | None
    round_trip_highest_us: float | None
    bandwidth_mb_s: float | None = Field(
        description="The bandwidth from the server to pgtrial's machine in 10^6 bytes per second. It was "
        "measured once, not for each trial."
    )
    clock_offset_us: float | None = Field(
        description="The difference of the host's clock from that of pgtrial's machine."
    )
    clock_offset_error_us: float | None


class MachinePart(Record):
    """The work of one of the machines that made the load together, over all trials in which it took part. None means
    that a value is not known."""

    machine: str
    address: str | None
    with_lab: bool | None = added(None, "True if the machine is that of pgtrial, or runs on it.")
    trials: int
    lost: int = Field(description="The number of trials in which the machine was lost.")
    clients: int | None = Field(description="The largest number of clients that the machine ran at one time.")
    transactions: int
    share: float | None = Field(
        description="The machine's share of the transactions that all machines made in the trials in which it "
        "took part."
    )
    tps: float | None = Field(
        description="The machine's tps in its median trial. Trials of different load points are mixed."
    )
    speed: float | None = Field(
        description="The machine's transactions per second and client, divided by those of the median machine "
        "of the same trial; the median over the trials. None if the machine was alone."
    )
    slower_by: float | None = Field(
        description="For a slow machine, the share by which its speed is below the median of the other machines; "
        "None for other machines."
    )
    cpu_per_transaction_us: float | None
    busiest_thread_share: float | None = Field(
        description="The CPU time of the load engine's busiest thread divided by the wall time, in the trial in "
        "which it was highest."
    )
    lag_p99_us: float | None = Field(
        description="The 99th percentile of the delay from the scheduled to the actual start of a transaction, in "
        "the trial in which it was highest; None without a rate."
    )
    start_skew_us: float | None = Field(
        description="The delay of the machine's start after the planned common start, in the trial in which the "
        "delay differed most from zero."
    )
    clock_offset_us: float | None = Field(
        description="The difference of the machine's clock from that of pgtrial's machine: the median over the "
        "trials in which the machine took part."
    )
    offset_error_us: float | None = Field(
        description="The largest possible error of the clock offset in all trials in which the machine took part."
    )


class MachineWay(Record):
    """The network path from one of the machines that made the load to one arm's server. pgtrial measured it by TCP
    connects before the trials."""

    machine: str
    arm: str
    trials: int = Field(description="The number of trials before which pgtrial measured the path.")
    round_trip_us: float = Field(
        description="The time of a TCP connect from the machine to the server, measured several times before a "
        "trial: the median over the trials of each trial's median."
    )
    round_trip_lowest_us: float
    round_trip_highest_us: float


class WhereItRan(Record):
    """The machines on which a study ran and what each of them did. It is recorded if there is more than one machine."""

    lab: str | None = Field(description="The operating system of pgtrial's machine; None if it is not known.")
    load: Literal["lab", "fleet"] = Field(
        description="What made the load: pgtrial's own machine (`lab`) or several machines together (`fleet`)."
    )
    servers: list[ServerLocation]
    machines: list[MachinePart] = Field(
        [], description="The machines that made the load together, in the order in which they first took part."
    )
    ways: list[MachineWay] = added(
        [],
        "The network path from each machine that made the load to each server; empty if clients "
        "used Unix sockets, or if the paths are not known.",
    )
