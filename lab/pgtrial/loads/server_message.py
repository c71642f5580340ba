"""The message of a server's error as a part of a sentence."""

from __future__ import annotations

import psycopg

from pgtrial.model.errors import one_line
from pgtrial.model.units import shortened

_LONGEST = 300
"""The largest number of characters of a message that are shown. A message about an open quotation mark has the whole
rest of the text."""


def message_of(error: psycopg.Error) -> str:
    """Returns the primary message of a server's error on one line, without a period at its end."""
    words = " ".join((error.diag.message_primary or one_line(error)).split())
    return shortened(words, _LONGEST).removesuffix(".")
