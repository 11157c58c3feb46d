"""The octets of a body, whatever has octets; anything else is refused."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from trio_amqp10.core.body_octets import body_octets
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("body", "octets"),
    [
        (b"ab", b"ab"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[::2], b"ac"),
        (array("H", [1, 2]), array("H", [1, 2]).tobytes()),
    ],
)
def test_octets_are_those_of_the_buffer(body: Any, octets: bytes) -> None:
    assert body_octets(body) == octets


@pytest.mark.parametrize("body", ["text", None, 3, [1], {"a": 1}])
def test_what_has_no_octets_is_refused(body: Any) -> None:
    with pytest.raises(
        LocalProtocolError, match=rf"body=.*: expected bytes, not {type(body).__name__}; encode it first"
    ):
        body_octets(body)
