"""Tests that pgtrial recognises the kind of a host by the answers of its shell. The answers of Windows are those that
people have published.
"""

from __future__ import annotations

import pytest

from pgtrial.machines.machine import HostLost
from pgtrial.machines.ssh.complaints import Dropped
from pgtrial.machines.ssh.machine import posix_system
from pgtrial.machines.ssh.windows import answers_to_powershell

pytestmark = pytest.mark.machine


CMD = (1, b"", b"'uname' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n")
POWERSHELL = (1, b"", b"uname : The term 'uname' is not recognized as the name of a cmdlet, function, script file\r\n")
TELLS = (0, b'\xef\xbb\xbf{"windows":"Windows_NT"}\r\n', b"#< CLIXML\r\n")
NO_POWERSHELL = (127, b"", b"sh: powershell: not found\n")


class Answering:
    """A connection whose host answers these, one after the other; an exception is raised."""

    login = "me@there"

    def __init__(self, *answers):
        self._answers = list(answers)

    def execute(self, command, timeout_s=None):
        del command, timeout_s
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("said", "system"),
    [(b"Linux\n", "Linux"), (b"Welcome\nto db1\nFreeBSD\n", "FreeBSD"), (b"DragonFly\n", "DragonFly")],
)
def test_a_posix_system_says_its_name_after_whatever_start_up_files_say(said, system):
    assert posix_system(Answering((0, said, b""))) == system
    assert not answers_to_powershell(Answering((0, said, b"")))


@pytest.mark.parametrize(
    "uname", [CMD, POWERSHELL, (0, b"MINGW64_NT-10.0-20348\n", b""), (0, b"CYGWIN_NT-10.0\n", b"")]
)
def test_windows_is_known_whatever_its_shell_is(uname):
    assert answers_to_powershell(Answering(uname, TELLS))
    with pytest.raises(HostLost, match="if the host has Windows, start its server yourself and name the server by dsn"):
        posix_system(Answering(uname))


def test_a_shell_that_is_neither_is_refused_with_its_words():
    with pytest.raises(HostLost, match=r"neither as a POSIX shell nor with PowerShell.*not available"):
        answers_to_powershell(Answering((1, b"This account is currently not available.\n", b""), NO_POWERSHELL))


def test_a_question_is_asked_again_after_a_drop_and_not_for_ever():
    assert posix_system(Answering(Dropped("gone"), (0, b"Linux\n", b""))) == "Linux"
    with pytest.raises(Dropped):
        posix_system(Answering(Dropped("gone"), Dropped("gone")))
    with pytest.raises(HostLost, match="did not end within 60 s"):
        posix_system(Answering(TimeoutError()))
