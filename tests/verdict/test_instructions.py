"""What counted instructions say about two arms: how far they differ, and in which functions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgtrial.verdict.instructions import compare_instructions
from tests.verdict.counts import BASE, PLAN, compared, count

NAMES = ["heap_getnext", "ExecScan", "hash_any", "memcpy"]
COUNTS = st.dictionaries(st.sampled_from(NAMES), st.floats(1.0, 1e6), min_size=1)


@given(COUNTS, COUNTS)
def test_the_differences_of_all_functions_add_up_to_the_difference_of_the_arms(base, head):
    [one] = compared(count("base", base), count("head", head))
    listed = sum(function.difference for function in one.functions)
    left_out = len(NAMES) * 1e-4 * one.baseline_instructions
    assert abs(one.instructions - one.baseline_instructions - listed) <= left_out
    assert [abs(function.difference) for function in one.functions] == sorted(
        (abs(function.difference) for function in one.functions), reverse=True
    )


@given(COUNTS, st.floats(0, 0.004))
def test_a_server_compared_with_itself_is_the_same_and_no_function_is_named(base, spread):
    [one] = compared(count("base", base, spread=spread), count("head", base, spread=spread))
    assert one.is_same
    assert one.functions == []


def test_an_arm_that_was_not_counted_is_not_compared():
    assert compared(count("base", BASE)) == []
    assert compare_instructions(PLAN, None) == []
