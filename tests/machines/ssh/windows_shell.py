"""Answers as OpenSSH for Windows does, as far as pgtrial can tell: cmd.exe as the login's shell, and PowerShell behind
it.

There is no Windows here: the words and numbers are recordings, or follow Microsoft's reference of the classes. Only the
processes are real, those of this machine that are called postgres.
"""

import base64
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path

_EVIDENCE = Path(__file__).parents[2] / "evidence"
CIM = _EVIDENCE / "collect/recorded/windows-cim.txt"
LOOK = _EVIDENCE / "observe/recorded/windows-look.txt"
PARTS_PER_S = 10_000_000


def recording(path):
    return json.loads("".join(line for line in path.read_text().splitlines() if not line.startswith("#")))


def postgres():
    """Yields number, parent and CPU time of each process, as Win32_Process has them."""
    ticks = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = stat.read_text().partition(" (")
        except OSError:
            continue
        words = rest.rpartition(") ")[2].split()
        if rest.startswith("postgres") and words:
            user, kernel = (int(count) * PARTS_PER_S // ticks for count in words[11:13])
            yield {
                "ProcessId": int(number),
                "ParentProcessId": int(words[1]),
                "KernelModeTime": kernel,
                "UserModeTime": user,
                "Created": int(words[19]),
            }


def look():
    told = recording(LOOK)
    passed = int(time.monotonic() * PARTS_PER_S)
    for processor in told["cpu"]:
        processor["PercentIdleTime"] += passed // 2
        processor["PercentUserTime"] += passed // 2
    told["disk"]["DiskWriteBytesPersec"] += passed
    return told | {"processes": list(postgres()), "own": PARTS_PER_S // 500}


def powershell(script):
    """Returns the recorded output of a script, which must be one of pgtrial's own."""
    process = re.search(r"Get-Process -Id (\d+)", script)
    if "$env:OS" in script:
        return '{"windows":"Windows_NT"}'
    if process is not None:
        return "postgres" if any(each["ProcessId"] == int(process[1]) for each in postgres()) else ""
    if "Win32_ComputerSystem" in script:
        return json.dumps(recording(CIM))
    if "ProcessorInformation" in script:
        return json.dumps(look())
    raise SystemExit(f"no recording for {script!r}")


def cmd(line):
    """Returns output, errors and status."""
    words = shlex.split(line, posix=False) or [""]
    if words[0].lower() not in ("powershell", "powershell.exe"):
        return (
            "",
            f"'{words[0]}' is not recognized as an internal or external command,\noperable program or batch file.\n",
            1,
        )
    options, encoded = words[1:-1], words[-1]
    assert options == ["-NoProfile", "-NonInteractive", "-OutputFormat", "Text", "-EncodedCommand"]
    assert len(line) < 8192
    sys.stdin.read()  # as PowerShell does to the end, however long that takes
    return powershell(base64.b64decode(encoded).decode("utf-16-le")), "#< CLIXML\n", 0


def main():
    with open(sys.argv[1], "a") as log:
        print(os.environ.get("SSH_ORIGINAL_COMMAND", "").split(" ")[0], file=log)
    output, errors, status = cmd(os.environ.get("SSH_ORIGINAL_COMMAND", ""))
    sys.stdout.buffer.write(output.replace("\n", "\r\n").encode())
    sys.stderr.buffer.write(errors.replace("\n", "\r\n").encode())
    sys.exit(status)


if __name__ == "__main__":
    main()
