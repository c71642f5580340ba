"""Quotes texts of users in messages. Unlike Python's repr, which doubles backslashes, a text in a message looks as the
user has written it, so that a pattern or a path can be compared with the original and copied."""

from __future__ import annotations


def quoted(value: object) -> str:
    """Returns a text in quotes, as it is except for control characters, which are escaped. Single quotes are used, or
    double quotes if only single quotes are in the text. A value that is not a text is returned as Python writes it.
    """
    if not isinstance(value, str):
        return repr(value)
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in value)
    mark = '"' if "'" in text and '"' not in text else "'"
    return f"{mark}{text}{mark}"
