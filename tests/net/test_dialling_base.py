"""Dialling of any client: entering, the watchers and leaving, without a protocol."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.core.errors import LocalProtocolError

from .dialled import EVEN, Dialling


async def test_first_place_that_answers_is_taken_and_closed_on_leaving() -> None:
    dialling = Dialling("a", "b", answers="b")
    async with dialling as connection:
        assert connection.told == ["ready"]
        assert connection.recovery is None
    assert dialling.dialled == ["a", "b"]
    assert connection.told == ["ready", "closed"]


async def test_exception_of_the_block_leaves_as_itself() -> None:
    with pytest.raises(KeyError):
        async with Dialling("a", answers="a"):
            raise KeyError


@pytest.mark.parametrize(
    ("places", "stream", "what"), [((), None, "no URL"), (("a",), object(), "cannot be dialled again")]
)
def test_what_cannot_be_dialled_is_said_at_once(places: tuple[str, ...], stream: Any, what: str) -> None:
    with pytest.raises(LocalProtocolError, match=what):
        Dialling(*places, stream=stream, backoff=EVEN)
