"""What systems and their tools call the facts, and what their words and numbers mean: names.toml."""

from __future__ import annotations

import tomllib
from typing import Any

from pgtrial.model.resources import resource

NAMES: dict[str, Any] = tomllib.loads(resource("names.toml", __package__))
