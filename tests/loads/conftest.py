"""What the tests of loads share: none needs a real probe of flushes."""

from tests.cheaper import cheaper  # noqa: F401 - a fixture of this folder
