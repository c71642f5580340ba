"""Labs at once on one machine: what one has set is never what another puts back."""

import subprocess
import sys
from pathlib import Path

import pytest

from pgtrial.machines import kernel
from pgtrial.machines.machine import LOCAL
from pgtrial.model.errors import ArmError
from tests.conftest import require, require_root

pytestmark = pytest.mark.machine


_OTHER = """
from pgtrial.machines.kernel import alone_changing
from pgtrial.machines.machine import LOCAL
with alone_changing(LOCAL):
    print("held", flush=True)
    input()
"""


def test_one_lab_waits_until_another_has_put_the_kernel_back():
    require(Path("/proc/sys/vm").is_dir(), "Linux")
    require_root()
    with subprocess.Popen([sys.executable, "-c", _OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        impatient = kernel.alone_changing(LOCAL, patience_s=0.0)
        with pytest.raises(ArmError, match="another pgtrial has been changing"), impatient:
            pass
        other.communicate(b"\n")
    assert other.returncode == 0
    with kernel.alone_changing(LOCAL):
        pass
