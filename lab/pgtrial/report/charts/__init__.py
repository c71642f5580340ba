"""The report's charts: every module here registers its makers, and a new chart is a new module."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pgtrial.report.data import StudyData


@dataclass(frozen=True)
class Figure:
    """One chart with the words that stand for it where it cannot be seen."""

    title: str
    alt: str
    spec: dict[str, Any]
    """Vega-Lite; colours come from the page, so that it follows light and dark."""
    unit: str = ""
    wide: bool = False


Maker = Callable[[StudyData], list[Figure]]

_makers: dict[str, list[Maker]] = {}


def chart(section: str) -> Callable[[Maker], Maker]:
    """Registers a maker of the charts of one section of the report."""

    def register(maker: Maker) -> Maker:
        _makers.setdefault(section, []).append(maker)
        return maker

    return register


def draw(section: str, data: StudyData) -> list[Figure]:
    """All charts of a section, in the order of the modules' names, whichever was imported first."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    makers = sorted(_makers.get(section, []), key=lambda maker: maker.__module__)
    return [figure for maker in makers for figure in maker(data)]
