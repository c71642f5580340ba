"""The sentences for hosts that cannot be reached."""

import errno
import socket

import asyncssh
import pytest

from pgtrial.machines.ssh.complaints import Where, may_pass, why

pytestmark = pytest.mark.machine


WHERE = Where("me@bench", "10.0.0.9", 22)


@pytest.mark.parametrize(
    ("error", "said", "passes"),
    [
        (OSError(errno.EHOSTUNREACH, "No route to host"), "there is no route to 10.0.0.9", True),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "there is no route to 10.0.0.9", True),
        (TimeoutError(), "10.0.0.9 does not answer on port 22; check that sshd runs there and that no firewall", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "10.0.0.9 refuses connections on port 22", True),
        (asyncssh.ConnectionLost("Login timeout expired"), "Login timeout expired; see whether `ssh me@bench`", True),
        (socket.gaierror(-2, "Name or service not known"), "no address is known for 10.0.0.9", False),
        (asyncssh.PermissionDenied("none left"), "accepts none of your keys", False),
        (asyncssh.KeyExchangeFailed("no match"), "no common algorithm (no match)", False),
        (asyncssh.HostKeyNotVerifiable("Host key is revoked for host x"), "is marked as revoked in known_hosts", False),
        (asyncssh.ConfigParseError("bad line"), "ssh's configuration or a key cannot be read: bad line", False),
    ],
)
def test_each_way_to_fail_has_its_sentence_and_only_some_are_tried_again(error, said, passes):
    sentence = why(error, WHERE, known=False)
    assert sentence.startswith("me@bench cannot be reached by ssh: ")
    assert said in sentence
    assert may_pass(error) is passes


def test_a_host_that_let_us_in_before_may_refuse_logins_while_it_starts():
    assert may_pass(asyncssh.PermissionDenied("System is booting up"), was_there=True)
    assert not may_pass(asyncssh.HostKeyNotVerifiable("not trusted"), was_there=True)


def test_a_changed_key_on_another_port_is_removed_as_known_hosts_writes_it():
    sentence = why(asyncssh.HostKeyNotVerifiable("not trusted"), Where("h", "h", 2222), known=True)
    assert "`ssh-keygen -R '[h]:2222'` and `ssh -p 2222 h` once" in sentence
