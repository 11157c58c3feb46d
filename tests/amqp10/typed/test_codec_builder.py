"""Annotations that have no AMQP type are refused when their codec is built."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest

from trio_amqp10.amqp10.wire import fields
from trio_amqp10.typed import Registry

TYPES = Registry()


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (complex, "complex has no AMQP type: make it a dataclass"),
        (Any.__class__, "has no AMQP type"),
        ("Nothing", "has no AMQP type"),
        (enum.Enum("Odd", {"A": (1, 2)}), "are not all of one simple type"),
        (enum.Enum("Odd", {"A": None}), "are not all of one simple type"),
        (Literal[b"a"] | complex, "complex has no AMQP type"),
        (Annotated[list[int], Annotated[int, "x"]], "only the values of an Enum or a Literal"),
        (Annotated[Literal[1, "a"], fields.ubyte], "are not all of one simple type"),
    ],
)
def test_annotation_that_says_no_type_is_a_type_error(annotation: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        TYPES.from_value(annotation, 1)
