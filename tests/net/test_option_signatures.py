"""Functions get the parameters of an options class, and show them as their own."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.option_signatures import lists, takes, takes_as, takes_on


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a bird may be given."""

    wings: int = 2
    name: str


@takes(Options)
def fly(options: Options) -> Options:
    """Take off."""
    return options


class Nest:
    """Where birds are."""

    @takes_on(Options)
    def add(self, options: Options) -> tuple[Nest, Options]:
        """Add a bird."""
        return self, options

    @takes_as(add)
    def replace(self, **options: Any) -> Any:
        """Replace a bird."""
        return self.add(**options)


def test_keywords_become_the_options() -> None:
    assert fly(name="crow") == Options(wings=2, name="crow")
    assert fly.__doc__ == "Take off."
    assert str(signature(fly)) == "(*, wings: 'int' = 2, name: 'str') -> 'Options'"
    assert fly.__annotations__ == {"wings": "int", "name": "str", "return": "Options"}


def test_first_argument_stays_as_it_is() -> None:
    nest = Nest()
    assert nest.add(name="crow", wings=1) == (nest, Options(wings=1, name="crow"))
    assert list(signature(Nest.add).parameters) == ["self", "wings", "name"]


def test_method_shows_the_parameters_of_another() -> None:
    nest = Nest()
    assert nest.replace(name="owl") == (nest, Options(name="owl"))
    assert list(signature(Nest.replace).parameters) == ["self", "wings", "name"]


def test_parameters_of_options_are_listed_in_place_of_keywords() -> None:
    @lists(Options)
    def count(nest: Nest, **options: Any) -> int:
        return len(options)

    assert list(signature(count).parameters) == ["nest", "wings", "name"]
    assert count(Nest(), wings=2) == 1


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"name": "x", "legs": 2}, r"fly\(\) got an unexpected keyword argument 'legs'"),
        ({}, r"fly\(\): missing a required (keyword-only )?argument: 'name'"),
    ],
)
def test_arguments_that_do_not_fit_are_those_of_the_function(keywords: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        fly(**keywords)


def test_text_in_place_of_a_number_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="wings"):
        fly(name="crow", wings="two")  # type: ignore[arg-type]
