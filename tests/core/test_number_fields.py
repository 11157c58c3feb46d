"""Text in place of a number is refused with the name of the option, in every class of options and every call that takes some."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.core.number_fields import check_numbers
from trio_amqp10.testing.azure_emulator import EntityOptions, HubOptions

if TYPE_CHECKING:
    from collections.abc import Callable

CLASSES: list[Any] = [
    amqp.Backoff,
    amqp.Limits,
    amqp.QueuePolicy,
    amqp.Quotas,
    amqp091.Limits,
    amqp_fast.Limits,
    EntityOptions,
    HubOptions,
]
NUMBERS = {"int", "int | None", "float", "float | None"}
CASES = [(cls, field.name) for cls in CLASSES for field in fields(cls) if field.type in NUMBERS]


@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda each: getattr(each, "__qualname__", each))
def test_class_of_options_refuses_text_as_a_number(cls: Any, name: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^{name}='7': expected an? (int|number)"):
        cls(**{name: "7"})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: amqp.open_connection("amqp://h", close_timeout="7"), "close_timeout"),  # type: ignore[arg-type]
        (lambda: amqp.open_connection("amqp://h", idle_timeout="7"), "idle_timeout"),  # type: ignore[arg-type]
        (lambda: amqp091.open_connection("amqp://h", heartbeat="7"), "heartbeat"),  # type: ignore[arg-type]
        (lambda: amqp_10_3.open_connection("amqp://h", channel_max="7"), "channel_max"),  # type: ignore[arg-type]
        (lambda: amqp_fast.open_connection("amqp-fast://h", close_timeout="7"), "close_timeout"),  # type: ignore[arg-type]
        (lambda: amqp.Container("shop").add_queue("tea", max_length="7"), "max_length"),  # type: ignore[arg-type]
    ],
)
def test_call_refuses_text_as_a_number(call: Callable[[], object], name: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^{name}='7': expected"):
        call()


async def test_receiver_refuses_text_as_credit() -> None:
    async with amqp.Container("shop").connect() as conn:
        with pytest.raises(amqp.LocalProtocolError, match="credit='10': expected an int or None"):
            conn.open_receiver("tea", credit="10")  # type: ignore[arg-type]


def test_number_of_another_library_and_none_are_taken() -> None:
    class Number:
        def __index__(self) -> int:
            return 3

    @dataclass
    class Options:
        count: int
        most: int | None
        seconds: float
        name: str

    check_numbers(Options(Number(), None, 3, "7"))  # type: ignore[arg-type]
    with pytest.raises(amqp.LocalProtocolError, match=r"^seconds=None: expected a number$"):
        check_numbers(Options(1, 1, None, "7"))  # type: ignore[arg-type]
