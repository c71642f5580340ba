"""true and false are no numbers in a study file, although Python and pydantic take them for 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from pgtrial.model.study.packs import Pack
from pgtrial.model.study.spec import StudySpec


def types_in(annotation: Any) -> Iterator[type]:
    """Yields the classes in an annotation, such as str and int for `list[str] | dict[str, int] | None`."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from types_in(argument)


def models_of(model: type[BaseModel], known: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """Adds a type of study files to `known`, with the types of the tables in it."""
    if model not in known:
        known.add(model)
        for field in model.model_fields.values():
            for nested in types_in(field.annotation):
                if issubclass(nested, BaseModel):
                    models_of(nested, known)
    return known


def numeric_keys() -> list[Any]:
    """Returns the keys of study files and packs whose values are numbers, or lists or tables of numbers."""
    # Sorted, since the processes of the tests have to find them in one order.
    models = sorted(models_of(Pack, models_of(StudySpec, set())), key=lambda model: model.__name__)
    keys = [(model, name, field.annotation) for model in models for name, field in model.model_fields.items()]
    return [
        pytest.param(model, name, {"x": value} if "dict" in str(annotation) else value, id=f"{model.__name__}.{name}")
        for model, name, annotation in keys
        for types in [{*types_in(annotation)} - {NoneType}]
        if types & {int, float} and bool not in types
        for value in [True]
    ]


def test_the_keys_are_found():
    names = {key.id for key in numeric_keys()}
    assert {"LoadSection.clients", "LoadSection.rate", "VerdictSection.blocks", "Pack.scripts", "SetUp.port"} <= names


@pytest.mark.parametrize(("model", "name", "value"), numeric_keys())
def test_a_numeric_key_refuses_true(model, name, value):
    with pytest.raises(ValidationError) as refused:
        model.model_validate({name: value})
    assert name in {error["loc"][0] for error in refused.value.errors() if error["loc"]}
