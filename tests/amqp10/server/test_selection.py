"""The filters of a source as nodes and stores have them (3.5.8)."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.server.selection import read_filters


def test_filters_that_cannot_be_read_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="decode"):
        read_filters(b"\xff", ("ada", None))
