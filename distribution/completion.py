"""The scripts by which shells complete `pgtrial`: those of Typer."""

from __future__ import annotations

import sys

from distribution.running import run

_PLACES = {
    "bash": "bash-completion/completions/pgtrial",
    "zsh": "zsh/{zsh}/_pgtrial",
    "fish": "fish/vendor_completions.d/pgtrial.fish",
}
_PRINT = "from pgtrial.cli import main; main([])"


def completions(*, zsh: str = "site-functions") -> dict[str, bytes]:
    """Each script by its path below a `share` directory. `zsh` is the directory of functions that zsh reads."""
    return {
        place.format(zsh=zsh): run(
            [sys.executable, "-c", _PRINT], env={"_PGTRIAL_COMPLETE": f"source_{shell}"}
        ).encode()
        for shell, place in _PLACES.items()
    }
