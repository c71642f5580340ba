#!/bin/sh
# pgtrial of the Debian package. The lab needs newer Python libraries than Debian has: the first call installs them by
# pip, each user's in a virtual environment of their own, and every later call starts the lab there.
set -eu
wheel=$(dirname "$(readlink -f "$0")")/../lib/pgtrial/@WHEEL@
environment=${XDG_DATA_HOME:-$HOME/.local/share}/pgtrial/@VERSION@
if [ ! -e "$environment/complete" ]; then
    # a shell that asks for completions waits for no installation
    [ -z "${_PGTRIAL_COMPLETE:-}" ] || exit 0
    echo "pgtrial: first call: installing its Python libraries (about 500 MB) in $environment" >&2
    if ! { python3 -m venv --clear "$environment" &&
        "$environment/bin/pip" install --quiet --disable-pip-version-check "$wheel" >&2; }; then
        echo "pgtrial: error: the libraries could not be installed in $environment; the load engine works without them: pgtrial-engine --help" >&2
        exit 3
    fi
    touch "$environment/complete"
fi
exec "$environment/bin/pgtrial" "$@"
