"""The files of callgrind are read: whatever a program has called, each function gets its own instructions and those
below it, and a file that is not complete is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.evidence.instructions.callgrind import FormatError, Function, Profile, by_function, read_profile
from pgtrial.model.records.instructions import UNNAMED

SERVER, LIBRARY = "/usr/lib/postgresql/15/bin/postgres", "/lib/libc.so.6"
FUNCTIONS = {"heap_getnext": SERVER, "ExecProcNode": SERVER, "0x00000000001f2a30": SERVER, "memcpy": LIBRARY}
ROOT = "main"


@dataclass(frozen=True)
class Call:
    """One call of a function in a run of a program, with the calls that it made."""

    name: str
    own: int
    calls: tuple[Call, ...] = ()

    @property
    def whole(self) -> int:
        return self.own + sum(call.whole for call in self.calls)


_LEAVES = st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.integers(0, 10**12))
_CALLS = st.recursive(
    _LEAVES,
    lambda inner: st.builds(
        Call, st.sampled_from(sorted(FUNCTIONS)), st.integers(0, 10**12), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=20,
)
RUNS = st.lists(_CALLS, max_size=4).map(lambda calls: Call(ROOT, 7, tuple(calls)))


class Truth:
    """What happened in a run, by the names that callgrind would give: a function within itself has the level 2."""

    def __init__(self, run: Call) -> None:
        self.own: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.below: Counter[str] = Counter()
        self.callers: dict[str, Counter[str]] = {}
        self._follow(run, ())

    def _follow(self, call: Call, stack: tuple[str, ...]) -> None:
        self.own[_levelled(call.name, stack)] += call.own
        if call.name not in stack:
            self.below[call.name] += call.whole
        if stack:
            self.calls[_levelled(stack[-1], stack[:-1]), _levelled(call.name, stack)] += call.whole
            if call.name not in stack:
                self.callers.setdefault(call.name, Counter())[stack[-1]] += call.whole
        for inner in call.calls:
            self._follow(inner, (*stack, call.name))


def _levelled(name: str, stack: tuple[str, ...]) -> str:
    return f"{name}'2" if name in stack else name


def _program(name: str) -> str:
    return FUNCTIONS.get(name.removesuffix("'2"), SERVER)


class Writer:
    """Writes a run as callgrind does, with one of its many spellings."""

    def __init__(self, truth: Truth, random: Random, *, compressed: bool, with_addresses: bool) -> None:
        self.truth, self.random = truth, random
        self.compressed = compressed
        self.columns = 2 if with_addresses else 1
        self.numbers: dict[tuple[str, str], int] = {}

    def lines(self) -> list[str]:
        lines = ["# callgrind format", "version: 1", "creator: callgrind-3.19.0", "pid: 4711", "cmd:  postgres -D /x"]
        lines += ["part: 1", "", "desc: I1 cache: ", f"positions: {'instr ' * (self.columns - 1)}line", "events: Ir"]
        lines += [f"summary: {self.truth.own.total()}", ""]
        for name in self.truth.own:
            program = _program(name)
            lines += [f"ob={self._named('ob', program)}", f"fl={self._named('fl', 'heapam.c')}"]
            lines += [f"fn={self._named('fn', name)}", *self._split(self.truth.own[name])]
            for (caller, called), count in self.truth.calls.items():
                if caller == name:
                    lines += self._called(program, called, count)
        return [*lines, "", f"totals: {self.truth.own.total()}", ""]

    def _called(self, program: str, called: str, count: int) -> list[str]:
        lines = []
        if _program(called) != program:
            lines.append(f"cob={self._named('ob', _program(called))}")
        if self.random.random() < 0.5:
            lines.append(f"cfi={self._named('fl', 'nodes.c')}")
        lines += [f"cfn={self._named('fn', called)}", f"calls=3 {self._position()}"]
        return [*lines, f"{self._position()} {count}"]

    def _split(self, count: int) -> list[str]:
        part = self.random.randint(0, count)
        lines = [f"{self._position()} {part}", "fi=(99) inlined.h", f"{self._position()} {count - part}"]
        return [*lines, "fe=(98) heapam.c", self._position()]  # a count of zero that is left out

    def _position(self) -> str:
        return " ".join(self.random.choice(["0", "+3", "-12", "*", "0x1f2a"]) for _ in range(self.columns))

    def _named(self, kind: str, name: str) -> str:
        if not self.compressed:
            return name
        known = (kind, name) in self.numbers
        number = self.numbers.setdefault((kind, name), len(self.numbers) + 1)
        return f"({number})" if known else f"({number}) {name}"


@given(RUNS, st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_each_function_has_the_instructions_of_the_run_that_was_written(run, random, compressed, with_addresses):
    truth = Truth(run)
    writer = Writer(truth, random, compressed=compressed, with_addresses=with_addresses)
    profile = read_profile(writer.lines())
    assert {function.name: count for function, count in profile.own.items()} == dict(truth.own)
    assert {(by.name, of.name): count for (by, of), count in profile.calls.items()} == dict(truth.calls)
    assert all(function.program == PurePosixPath(_program(function.name)).name for function in profile.own)
    assert profile.total == run.whole


@given(RUNS, st.randoms(use_true_random=False))
def test_a_function_that_calls_itself_counts_once_with_all_below_it(run, random):
    truth = Truth(run)
    costs = by_function(read_profile(Writer(truth, random, compressed=True, with_addresses=False).lines()))
    for function, cost in costs.items():
        name = "0x00000000001f2a30" if function.name == UNNAMED else function.name
        assert cost.own == truth.own[name] + truth.own[f"{name}'2"]
        assert cost.below == truth.below[name]
        callers = {by.name.replace(UNNAMED, "0x00000000001f2a30"): count for by, count in cost.callers.items()}
        assert callers == dict(truth.callers.get(name, {}))
    assert sum(cost.own for cost in costs.values()) == run.whole


@given(RUNS, RUNS, st.randoms(use_true_random=False))
def test_profiles_are_added_and_subtracted_function_by_function(one, other, random):
    profiles = [
        read_profile(Writer(Truth(run), random, compressed=True, with_addresses=False).lines()) for run in (one, other)
    ]
    both = profiles[0] + profiles[1]
    assert both.total == one.whole + other.whole
    left = both - profiles[1]
    assert {key: count for key, count in left.own.items() if count} == {
        key: count for key, count in profiles[0].own.items() if count
    }
    assert {key: count for key, count in left.calls.items() if count} == {
        key: count for key, count in profiles[0].calls.items() if count
    }


def test_copies_of_a_function_that_a_compiler_has_made_are_one_function():
    names = ["scan", "scan.isra.0", "scan.constprop.1", "scan.part.0.cold", "scan.lto_priv.3", "scan [clone .cold]"]
    profile = Profile({Function(name, "postgres"): 10**place for place, name in enumerate(names)})
    assert {function.name: cost.own for function, cost in by_function(profile).items()} == {"scan": 111_111}


RUN = Call(ROOT, 5, (Call("memcpy", 6),))


def written(**spelling: bool) -> list[str]:
    given = {"compressed": True, "with_addresses": False, **spelling}
    return Writer(Truth(RUN), Random(1), **given).lines()


def test_a_file_that_was_cut_off_is_refused():
    lines = written()
    assert read_profile(lines).total == 11
    for length in range(len(lines) - 2):
        with pytest.raises(FormatError, match="to its end"):
            read_profile(lines[:length])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("totals: 12", "its functions have 11 instructions, and it states 12"),
        ("fn=(4711)", r"is not in callgrind's format: fn=\(4711\)"),
        ("0 many", "is not in callgrind's format: 0 many"),
        ("jump=3 0", "is not in callgrind's format: jump=3 0"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(line, complaint):
    lines = [text for text in written() if not text.startswith("totals")]
    with pytest.raises(FormatError, match=complaint):
        read_profile([*lines, line])
