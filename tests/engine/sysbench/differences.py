"""The differences on purpose from sysbench 1.0.20, with their reasons; docs/sysbench-compatibility.md lists the same.

Everything that is not listed here must be equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A known difference of the outputs: patterns with their replacements for the original's output (`theirs`) and for
    ours (`ours`).
    """

    why: str
    theirs: tuple[tuple[str, str], ...] = ()
    ours: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Instead:
    """A pattern of command lines whose run ends otherwise with our engine than with the original.

    Our run must exit with `status` and print a line that matches `says`; the two outputs are not compared.
    """

    why: str
    line: str
    says: str
    status: int = 1


# where in a script of sysbench's own
_PLACE = r"(?:/usr/share/sysbench/\w+\.lua|\[string \"sysbench\.\w+\.lua\"\]|(?<=: )(?:cmdline|sql|rand)\.lua):\d+: "

DIFFERENCES = [
    Difference(
        "each names itself and the LuaJIT that it was built with",
        theirs=((r"^sysbench 1\.0\.20( \(using system LuaJIT [^)]*\))?$", "sysbench 1.0.20"),),
        ours=((r"^sysbench 1\.0\.20 \(pgtrial [\d.]+(, using bundled LuaJIT [^)]*)?\)$", "sysbench 1.0.20"),),
    ),
    Difference(
        "the built-in tests are no scripts, and have no file and line; the modules within sysbench are others",
        theirs=((_PLACE, ""),),
        ours=((_PLACE, ""), (r"^(FATAL: `[\w.]+' function failed: )(?:oltp|bulk|select)_\w+: ", r"\1")),
    ),
    Difference(
        "the search path ends in Debian's folder for libraries there, in that of a sysbench made from source here",
        theirs=((r"^\tno file '/usr/lib/x86_64-linux-gnu/sysbench'\n", ""),),
        ours=((r"^\tno file '/usr/local/share/sysbench/.*'\n", ""), (r"/usr/local/share/sysbench/\?\.lua;", "")),
    ),
    Difference(
        "--db-debug is taken and adds nothing: the client does not time what a library does for it",
        theirs=(
            (r"^DEBUG: (?:Query execution|Results fetching) statistics:\n", ""),
            (r"^DEBUG: +(?:min|avg|max|total): +\d+\.\d{4}s\n", ""),
            (r"^DEBUG: *\n", ""),
        ),
        ours=((r"^DEBUG: *\n", ""),),
    ),
    Difference(
        "sysbench.rand has later versions' functions, too",
        ours=((r"^(sysbench\.rand\t.*) varstring zipfian$", r"\1"),),
    ),
    Difference(
        "an option that a test without options of its own does not know is told of",
        ours=((r"^WARNING: the test '\w+' has no option .*\n", ""),),
    ),
]

INSTEAD = [
    Instead(
        "what cannot be understood in a file is an error, and so is a file that is not there",
        r"--config-file(?:=(?:[cekn]\.cfg|i\.cfg oltp_point.*|nosuch.cfg|) | oltp)",
        r"^(?:invalid option: |line 1 is not of the form NAME=VALUE|unexpected EOL on line 1|nosuch\.cfg: |"
        r"Invalid value for the 'config_file' option: '')",
    ),
    Instead(
        "--test names a test, in a file it would name none",
        r"=m\.cfg run",
        r"^this option is allowed only on the command line: test=",
    ),
    Instead("a space before the equals sign is none of the name", r"=b\.cfg", r"^Number of threads: 2$", status=0),
    Instead("a switch that is off in a file is off", r"=l\.cfg", r"^         99th percentile: +#$", status=0),
    Instead(
        "a driver or a mode that is none is refused before the run",
        r"--db-(?:driver|ps-mode)=(?:nosuch|help|x)\b",
        r"^FATAL: ",
    ),
    Instead(
        "numbers that make no sense are refused",
        r"--(?:threads(?:=-1|=|)|events=(?:-5|)|time=(?:-1|)|(?:rate|report-interval|forced-shutdown)=-1) run",
        r"^(?:FATAL: )?Invalid value for ",
    ),
    Instead(
        "so are distributions that make no sense",
        r"--rand-(?:type=|spec-iter=0|spec-pct=101|spec-res=101|spec-res=-1|pareto-h=(?:x|0|2|-1)) run",
        r"^(?:FATAL: )?(?:Invalid|--rand-)",
    ),
    Instead(
        "values of a test's options that are no numbers are refused",
        r"--(?:size|part|number-of-ranges|random-points|a-size|a-double)=x run",
        r"^Invalid value for the '\w+' option: 'x'$",
    ),
    Instead("a verbosity is told as it was given", r"--verbosity=-1", r"^Invalid value for verbosity: -1$"),
    Instead("a test needs a command", r"^bulk_insert$", r"^FATAL: Command is required\. "),
    Instead(
        "a failed command has the status of a failure",
        r"--threads=2 fails$|--at=done run|--at=help help",
        r"^sysbench 1\.0\.20$",
    ),
    Instead("the tests of 0.5 are there, by their names", r"^oltp(?:\.lua)? run", r"^SQL statistics:$", status=0),
    Instead(
        "so are built-in tests with .lua where there is no file",
        r"^oltp_point_select\.lua ",
        r"^SQL statistics:$",
        status=0,
    ),
    Instead("help names what is here", r"--help(?:=on)?(?: |$)", r"^  oltp_read_only - ", status=0),
    Instead(
        "a statement that cannot be prepared ends the run; the original goes on, and crashes",
        r"^\w+ --events=5 run$",
        r"^FATAL: `thread_(?:init|run|done)' function failed: ",
    ),
    Instead(
        "an error is told of where the script made it",
        r"--how=(?:row|disconnected|method|prepare|random) run",
        r"function failed: errors\.lua:\d+: ",
    ),
    Instead(
        "an option whose default is of no type has none", r"^bad_options4\.lua", r"cannot determine type for option a$"
    ),
    Instead(
        "a client is a coroutine, which cannot wait for the server within a function of C",
        r"^callbacks\.lua",
        r"the server cannot be asked within a function that Lua's library calls back",
    ),
    Instead(
        "a parameter that is nil is NULL, a fraction is what it is; there it keeps its former value, and spoils memory",
        r"^nulls\.lua",
        r"^NULLs\t1\t1\t1\nsum\t0\.5$",
        status=0,
    ),
    Instead(
        "a statement of bulk_insert that fails ends the run, also the last one, and says so",
        r"^bulk_insert (?:--nosuch=1|.*--table-size=100?\b.*|--events=(?:5|10)\b.*) ?run$",
        r"^FATAL: `thread_(?:run|done)' function failed: ",
    ),
    Instead(
        "a connection that was closed can be made again", r"^connections\.lua", r"^again\ttrue\ttwo again$", status=0
    ),
]


def without_known(side: str, text: str) -> str:
    """Returns the output of a run in which known differences are replaced by the same words on both sides."""
    for difference in DIFFERENCES:
        for pattern, replacement in difference.theirs if side == "original" else difference.ours:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def instead_of(line: str) -> Instead | None:
    """Returns the way in which our run of a line of arguments ends, if it differs from the original's."""
    return next((instead for instead in INSTEAD if re.search(instead.line, line)), None)
