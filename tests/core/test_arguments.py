"""The checks of arguments: right values pass, others are named."""

from __future__ import annotations

from collections import OrderedDict
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.core.arguments import (
    check_callable,
    check_count,
    check_text,
    check_timeout,
    check_type,
    table_of,
)
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_right_values_pass() -> None:
    check_type("body", b"", bytes, "bytes")
    check_text("name", "")
    check_count("window", 1)
    check_count("length", 0, 0)
    for seconds in (0, 1, 0.5, inf):
        check_timeout(seconds)
    check_callable("call", print)
    assert table_of("arguments", None) == {}
    given = OrderedDict(a=1)
    assert table_of("arguments", given) == {"a": 1}
    assert table_of("arguments", given) is not given


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_type("body", "x" * 99, bytes, "bytes"), r"body='x+\.\.\.x+': expected bytes$"),
        (lambda: check_text("name", None), "name=None: expected a str"),
        (lambda: check_count("window", "5"), "window='5': expected a whole number, at least 1"),
        (lambda: check_count("window", 0), "window=0: expected a whole number, at least 1"),
        (lambda: check_timeout("5"), "timeout='5': expected seconds, 0 or more, or None for any time"),
        (lambda: check_timeout(-1), "timeout=-1: expected"),
        (lambda: check_timeout(nan), "timeout=nan: expected"),
        (lambda: check_callable("call", 5), "call=5: expected an async function"),
        (lambda: table_of("arguments", [1]), r"arguments=\[1\]: expected a mapping, such as a dict, or None"),
    ],
)
def test_other_values_are_named(check: Callable[[], Any], message: str) -> None:
    with pytest.raises(LocalProtocolError, match=message):
        check()
