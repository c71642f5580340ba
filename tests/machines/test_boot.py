"""A machine's start is told from another one by what its system says of it, whatever becomes of its clock."""

from __future__ import annotations

import subprocess

import pytest

from pgtrial.machines.posix import ASK_START, BOOT_ID, parse_start

pytestmark = pytest.mark.machine


HOUR = 3600
SYSCTL = """#!/bin/sh
case "$*" in
{known}
*) echo "sysctl: unknown oid '$2'" >&2; exit 1 ;;
esac
"""
BOOTTIME = "'-n kern.boottime') echo '{ sec = 1778631299, usec = 929665 } Wed May 13 02:14:59 2026' ;;"
SYSTEMS = {
    # without -x it prints nothing, and succeeds
    "FreeBSD 14": f"""-nx\\ kern.boot_id) echo 'Format: Length:16 Dump:0x4c8609698ad1a11cdc00cf6eb7d954e1' ;;
*kern.boot_id) ;;
{BOOTTIME}""",
    "FreeBSD 12": BOOTTIME,
    "macOS": f"""*kern.bootsessionuuid) echo 7D0FD33A-57D7-4D4C-9C5E-0C1B5B0F6E4B ;;
{BOOTTIME}""",
    "OpenBSD": "*kern.boottime) echo 'Wed May 13 02:14:59 2026' ;;",
    "none": "",
}
TOLD = {
    "FreeBSD 14": "Format: Length:16 Dump:0x4c8609698ad1a11cdc00cf6eb7d954e1",
    "FreeBSD 12": "{ sec = 1778631299, usec = 929665 } Wed May 13 02:14:59 2026 now 1778634899",
    "macOS": "7D0FD33A-57D7-4D4C-9C5E-0C1B5B0F6E4B",
    "OpenBSD": "Wed May 13 02:14:59 2026 now 1778634899",
    "none": "",
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_system_tells_its_start_by_what_changes_least(system, tmp_path):
    for name, script in (("sysctl", SYSCTL.format(known=SYSTEMS[system])), ("date", "#!/bin/sh\necho 1778634899\n")):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    asked = ASK_START.replace(BOOT_ID, f"{tmp_path}/absent").replace("PATH=$PATH", f"PATH={tmp_path}:$PATH")
    done = subprocess.run(["/bin/sh", "-s"], input=asked, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{TOLD[system]}\n", "")
    start = parse_start(done.stdout, 0.0)
    if system == "none":
        assert start is None
    else:
        assert start is not None
        assert start.age_s == (HOUR if system == "FreeBSD 12" else None)


def boot_text(boot: int, now: int) -> str:
    """Returns the boot time in the form of FreeBSD 12 and DragonFly."""
    return f"{{ sec = {boot}, usec = 929665 }} Wed May 13 02:14:59 2026 now {now}\n"


@pytest.mark.parametrize("up_s", [60, 1000 * HOUR])
@pytest.mark.parametrize("step_s", [0, 2 * HOUR, -24 * HOUR])
@pytest.mark.parametrize("passed_s", [0, 1, 24 * HOUR])
def test_a_clock_that_is_stepped_is_no_other_start_and_a_start_is_one_whatever_the_clock(up_s, step_s, passed_s):
    boot, seen = 1778631299, 5000.0
    now = boot + up_s
    before = parse_start(boot_text(boot, now), seen)
    assert before is not None
    # a second more or less is cut off where each is told
    for cut in (-1, 0, 1):
        later = parse_start(boot_text(boot + step_s, now + step_s + passed_s + cut), seen + passed_s)
        assert before.is_same(later)
    for down_s in {0, passed_s // 2, passed_s}:
        anew = parse_start(boot_text(now + down_s + step_s, now + passed_s + step_s), seen + passed_s)
        assert not before.is_same(anew)


def test_a_name_is_another_one_after_each_start():
    one, same, other = (
        parse_start(boot_text, seen) for boot_text, seen in (("a-1\n", 0.0), ("a-1\n", 9.0), ("a-2\n", 9.0))
    )
    assert one.is_same(same)
    assert not one.is_same(other)


def test_where_a_name_is_told_at_last_the_system_is_another_one():
    by_age, by_name = parse_start(boot_text(1778631299, 1778634899), 0.0), parse_start("a-1\n", 1.0)
    assert not by_age.is_same(by_name)
