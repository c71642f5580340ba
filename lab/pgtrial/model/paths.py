"""Checks paths that another person has written, as in a plan or a bundle."""

from __future__ import annotations


def stays_below(path: str) -> bool:
    """True if a path with slashes cannot leave the folder to which it is relative: it is not absolute, and none of its
    parts is empty, `.` or `..`."""
    return {"", ".", ".."}.isdisjoint(path.split("/"))
