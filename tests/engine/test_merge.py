"""Events of several machines as those of one run: two engines side by side, merged from files and while they come."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from pgtrial.conduct.trial.outcome import Outcome
from tests.conftest import require_engine
from tests.engine.events import Event, assert_consistent, done_of, events_of, histogram, of_kind
from tests.engine.programs import TIMEOUT_S, Ended, ended

LOAD = ("-n", "-c", "2", "-T", "2", "--warmup", "0.5", "--random-seed=7")
PHASES = ("warmup", "measure", "drain")


@pytest.fixture(scope="module")
def parts(peers, loaded, tmp_path_factory) -> list[Path]:
    """Runs the same load at a rate with two engines at once, so that both have lags, and returns their files of
    events.
    """
    paths = [tmp_path_factory.mktemp("merge") / f"{name}.jsonl" for name in ("ann", "bob")]
    started = [
        peers[1].start(loaded(18), [*LOAD, "-b", "select-only", "-R", "2000", "--events", str(path)]) for path in paths
    ]
    for process in started:
        with process:
            assert ended(process).status == 0
    return paths


def merge(*args: str | Path, typed: str = "") -> Ended:
    command = [require_engine(), "merge", *args]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    return Ended(done.returncode, done.stdout, done.stderr)


def read(paths: list[Path]) -> list[list[Event]]:
    return [events_of(path.read_text()) for path in paths]


def as_lab(events: list[Event]) -> Outcome:
    outcome = Outcome()
    for event in events:
        outcome.add(event)
    return outcome


def counts(encoded: list[str]) -> list[int]:
    """Returns the sum of histograms, bucket by bucket."""
    return list(histogram(encoded).counts)


def assert_sum(whole: Event, parts: list[Event], *, lags: bool = True) -> None:
    """Counts, histograms and moments of the whole are those of its parts together."""
    assert whole["transactions"] == sum(part["transactions"] for part in parts)
    assert whole["failures"] == dict(sum((Counter(part["failures"]) for part in parts), Counter()))
    for name in ("histogram", "service_histogram", "lag_histogram") if lags else ():
        assert counts([whole[name]]) == counts([part[name] for part in parts])
    spreads = [(part["transactions"], part["latency_us"]) for part in parts if part.get("latency_us")]
    if spreads and lags:
        found, count = whole["latency_us"], whole["transactions"]
        mean = sum(number * spread["mean"] for number, spread in spreads) / count
        squares = sum(number * (spread["stddev"] ** 2 + spread["mean"] ** 2) for number, spread in spreads) / count
        assert found["mean"] == pytest.approx(mean, rel=1e-9)
        # of a few latencies that are nearly the same the difference is nothing but the last bits of either
        assert found["stddev"] == pytest.approx(max(0.0, squares - mean**2) ** 0.5, rel=1e-6, abs=1e-6 * mean)
        assert found["min"] == min(spread["min"] for _, spread in spreads)
        assert found["max"] == max(spread["max"] for _, spread in spreads)


@pytest.mark.server
def test_two_engines_are_merged_as_one(parts):
    done = merge(*parts)
    assert (done.status, done.stderr) == (0, "")
    events, (one, other) = events_of(done.stdout), read(parts)
    assert_consistent(events)
    for phase in PHASES:
        ticks = [of_kind(each, "tick", phase=phase) for each in (one, other)]
        whole = of_kind(events, "tick", phase=phase)
        assert len(whole) == max(map(len, ticks))
        for second, tick in enumerate(whole):
            assert_sum(tick, [each[second] for each in ticks if second < len(each)])
    end, ends = done_of(events), [done_of(one), done_of(other)]
    for phase in PHASES:
        assert_sum(end[phase], [each[phase] for each in ends], lags=phase != "drain")
    assert end["measure"]["tps"] == pytest.approx(sum(each["measure"]["tps"] for each in ends))
    assert end["client"]["cpu_user_s"] == pytest.approx(sum(each["client"]["cpu_user_s"] for each in ends))
    assert events[0]["plan"]["clients"] == 4
    assert events[1] == events[1] | {"clients": 4, "connect_s": max(each["connect_s"] for each in ends)}
    shares = {share["machine"]: share for share in end["machines"]}
    assert shares.keys() == {"ann", "bob"}
    assert shares["bob"]["transactions"] == ends[1]["measure"]["transactions"]
    assert shares["bob"]["lag_p99_us"] == ends[1]["measure"]["lag_us"]["p99"]


@pytest.mark.server
def test_the_lab_reads_it_as_one_engine(parts):
    outcome = as_lab(events_of(merge(*parts).stdout))
    assert outcome.failure(0, "") is None
    assert outcome.clients == 4
    assert outcome.measured.transactions == sum(done_of(each)["measure"]["transactions"] for each in read(parts))
    assert outcome.client.cpu_per_transaction_us > 0
    assert outcome.timeline().height == 2


def lines_of(path: Path, index: int) -> list[str]:
    return [f"{index}\t{line}\n" for line in path.read_text().splitlines()]


@pytest.mark.server
def test_seconds_come_while_the_machines_still_run(parts):
    ann, bob = (lines_of(path, index) for index, path in enumerate(parts))
    whole = events_of(merge(*parts).stdout)
    with subprocess.Popen(
        [require_engine(), "merge", "--machines=ann,bob"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        # hello, connected, phase, tick: one machine is ahead, and the whole is as far as the other
        process.stdin.write("".join(ann + bob[:4]))
        process.stdin.flush()
        first = [json.loads(process.stdout.readline()) for _ in range(4)]
        assert [event["event"] for event in first] == ["hello", "connected", "phase", "tick"]
        assert process.poll() is None
        rest, _ = process.communicate("".join(bob[4:]), timeout=TIMEOUT_S)
        assert process.returncode == 0
    first[0]["pid"] = whole[0]["pid"]
    assert first + events_of(rest) == whole


@pytest.mark.server
def test_a_lost_machine_is_told_of_and_the_others_go_on(parts):
    ann, bob = (lines_of(path, index) for index, path in enumerate(parts))
    first_tick = next(index for index, line in enumerate(bob) if '"second":0' in line and '"measure"' in line)
    done = merge("--machines=ann,bob", typed="".join([*ann[:5], *bob[: first_tick + 1], "1\t\n", *ann[5:]]))
    assert done.status == 2
    assert done.stderr == (
        "pgtrial-engine merge: warning: machine bob was lost in second 1 of the phase measure: its events end there, "
        "and only those of the other machines go on\n"
    )
    events = events_of(done.stdout)
    (lost,) = of_kind(events, "lost")
    assert (lost["machine"], lost["phase"], lost["second"]) == ("bob", "measure", 1)
    end = done_of(events)
    so_far = of_kind(read(parts)[1], "tick", phase="measure", second=0)[0]["transactions"]
    assert end["measure"]["transactions"] == done_of(read(parts)[0])["measure"]["transactions"] + so_far
    assert [share["status"] for share in end["machines"]] == [0, None]
    assert as_lab(events).failure(done.status, done.stderr.strip()).startswith("the engine ended with status 2")


@pytest.mark.server
def test_a_file_that_was_cut_off_is_a_lost_machine(parts, tmp_path):
    cut = tmp_path / "cut.jsonl"
    cut.write_text(parts[1].read_text()[:-20])
    done = merge(parts[0], cut)
    assert (done.status, len(of_kind(events_of(done.stdout), "lost", machine="cut"))) == (2, 1)


def test_events_of_version_1_are_merged_and_read():
    paths = sorted((Path(__file__).parent / "events_version_1").iterdir())
    done = merge(*paths)
    assert (done.status, done.stderr) == (0, "")
    events, parts = events_of(done.stdout), read(paths)
    assert [part[0]["protocol"] for part in parts] == [1, 1]
    assert events[0]["protocol"] == 2
    measured = [done_of(part)["measure"] for part in parts]
    of_before = HdrHistogram(1, 3_600_000_000, 3)
    for part in measured:
        of_before.decode_and_add(part["histogram"])
    whole = done_of(events)["measure"]
    assert whole["transactions"] == of_before.get_total_count() == sum(part["transactions"] for part in measured)
    ticks = of_kind(events, "tick", phase="measure")
    assert histogram([tick["histogram"] for tick in ticks]).get_total_count() == whole["transactions"]
    for name, percent in (("p50", 50), ("p99", 99)):
        assert whole["latency_us"][name] == pytest.approx(of_before.get_value_at_percentile(percent), rel=2e-3)
    for part, figures in zip(parts, measured, strict=True):
        lab = as_lab(part).measured
        assert (lab.transactions, lab.latency_us.p50) == (figures["transactions"], figures["latency_us"]["p50"])


def changed(path: Path, into: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    into.write_text(text.replace(old, new, 1))
    return into


@pytest.mark.server
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"protocol":2', '"protocol":3', "machine eve: line 1 speaks version 3 of the event protocol"),
        ("select only", "tpcb-like", 'machine eve did not take part in the run of machine ann: "scripts" is'),
        ('"duration_s":2.0', '"duration_s":3.0', '"duration_s" is 2.0 on ann and 3.0 on eve'),
        ('"random_seed":"7"', '"random_seed":"8"', '"random_seed" is "7" on ann and "8" on eve'),
        ('"transactions":', '"transactions":1', "machine eve: line"),
        ('"event":"phase"', '"event":phase', "machine eve: line 3 is not an event of this protocol"),
        ('"histogram":"', '"histogram":"/', "cannot be added: its histogram"),
    ],
)
def test_what_is_no_part_of_the_run_is_refused_in_a_sentence(parts, tmp_path, old, new, message):
    done = merge(parts[0], changed(parts[1], tmp_path / "eve.jsonl", old, new))
    assert done.status == 3
    assert done.stderr.startswith("pgtrial-engine merge: error: machine eve")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_lines_without_a_machine_are_refused():
    done = merge("--machines=ann,bob", typed="2\t{}\n")
    message = "line 1 of standard input does not begin with a machine's number, from 0 to 1, and a tab"
    assert (done.status, done.stderr) == (3, f"pgtrial-engine merge: error: {message}\n")
