"""Limits are refused when they are out of their range."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp091.engine.limits import Limits


@pytest.mark.parametrize(
    "wrong", [{"channel_max": 0}, {"channel_max": 65_536}, {"frame_max": 4095}, {"heartbeat": -1}], ids=str
)
def test_limit_out_of_its_range_is_a_value_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]
