"""Limits are refused when they are out of their range."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast.engine.limits import Limits


@pytest.mark.parametrize(
    "limits",
    [{"frame_max": 1023}, {"channel_max": -1}, {"handle_max": 70_000}, {"heartbeat": -1}, {"txn_limit": -1}],
)
def test_limits_are_refused_when_out_of_range(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        Limits(**limits)  # type: ignore[arg-type]
