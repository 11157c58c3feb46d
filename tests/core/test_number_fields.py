"""Text in place of a number is refused with the name of the option, in every class of options and every call that takes some."""

from __future__ import annotations

import math
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


@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda each: getattr(each, "__qualname__", each))
def test_class_of_options_refuses_a_bool_as_a_number(cls: Any, name: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^{name}=True: expected an? (int|number)"):
        cls(**{name: True})


@pytest.mark.parametrize("cls", [amqp.Limits, amqp091.Limits, amqp_fast.Limits])
@pytest.mark.parametrize("value", [-1, math.nan])
def test_limits_are_neither_negative_nor_nan(cls: Any, value: float) -> None:
    for field in fields(cls):
        if field.type in NUMBERS:
            named = f"^{field.name}={value}: expected "
            with pytest.raises((amqp.LocalProtocolError, ValueError), match=named):
                cls(**{field.name: value})


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (amqp.Limits, "incoming_window", 0),
        (amqp.Limits, "incoming_window", 2**32),
        (amqp.Limits, "handle_max", 2**32),
        (amqp.Limits, "channel_max", 2**16),
        (amqp.Limits, "max_message_size", 0),
        (amqp.Limits, "output_soft", 0),
        (amqp091.Limits, "write_buffer", 0),
        (amqp_fast.Limits, "write_buffer", 0),
    ],
)
def test_limits_refuse_what_no_connection_works_with(cls: Any, name: str, value: int) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^{name}={value}: expected "):
        cls(**{name: value})


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


@pytest.mark.parametrize("value", [-1, math.nan])
def test_idle_timeout_is_neither_negative_nor_nan(value: float) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^idle_timeout={value}: expected at least 0"):
        amqp.open_connection("amqp://h", idle_timeout=value)


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (amqp.Limits, "handshake_timeout"),
        (amqp.Limits, "header_timeout"),
        (amqp.Limits, "layer_timeout"),
        (amqp091.Limits, "handshake_timeout"),
        (amqp_10_3.Limits, "handshake_timeout"),
        (amqp_fast.Limits, "handshake_timeout"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_handshake_has_some_time(limits: Any, name: str, value: float) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=f"^{name}={value}: expected seconds above 0"):
        limits(**{name: value})
    assert getattr(limits(**{name: None}), name) is None


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
