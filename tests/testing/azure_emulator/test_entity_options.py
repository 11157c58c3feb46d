"""Options of hubs and entities that make no sense are refused."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing.azure_emulator import EntityOptions, EventHubs, HubOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition_count": 0},
        {"max_events": 0},
        {"message_retention": 0.0},
        {"consumer_groups": ("",)},
        {"consumer_groups": "audit"},
        {"consumer_groups": ("audit", "Audit")},
        {"consumer_groups": ("$default",)},
    ],
)
def test_hub_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        EventHubs().add_hub("clicks", HubOptions(**wrong))


@pytest.mark.parametrize(
    "wrong", [{"lock_duration": 0}, {"default_message_time_to_live": -1}, {"max_delivery_count": 0}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        EntityOptions(**wrong)
