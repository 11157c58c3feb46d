"""The options of an open performative, each declared once (2.7.1).

``open_connection`` and ``serve`` describe the options for users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

from trio_amqp10.amqp10.wire.frames import MIN_MAX_FRAME_SIZE
from trio_amqp10.core.arguments import check_type
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.number_fields import check_numbers, check_range
from trio_amqp10.core.peer_rules import DEFAULT_STRICT, Strict

from .limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """The options of a connection, for the dialling and the accepting end.

    Raises:
        LocalProtocolError: a value is not a number, or negative, or a frame size is below the minimum (2.7.1).
    """

    idle_timeout: float | None = 60.0
    max_frame_size: int | None = None
    channel_max: int | None = None
    properties: dict[Any, Any] | None = None
    desired_capabilities: str | Iterable[str] = ()
    offered_capabilities: str | Iterable[str] = ()
    outgoing_locales: str | Iterable[str] = ()
    incoming_locales: str | Iterable[str] = ()
    limits: Limits | None = None
    strict: bool | Strict | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        check_range("idle_timeout", self.idle_timeout, 0)
        for name in _SYMBOLS:  # an iterator can be read only once
            object.__setattr__(self, name, symbols(getattr(self, name), name))
        size = self.effective_limits.max_frame_size
        if size < MIN_MAX_FRAME_SIZE:
            raise LocalProtocolError(
                f"max_frame_size={size}: expected at least {MIN_MAX_FRAME_SIZE} octets (2.7.1)"
            )

    @property
    def effective_limits(self) -> Limits:
        """The limits, after ``max_frame_size`` and ``channel_max`` were applied."""
        limits = self.limits or DEFAULT_LIMITS
        if self.max_frame_size is not None:
            limits = replace(limits, max_frame_size=self.max_frame_size)
        if self.channel_max is not None:
            limits = replace(limits, channel_max=self.channel_max)
        return limits

    def keywords(self) -> OpenKeywords:
        """Return these options as keyword arguments."""
        return cast("OpenKeywords", {name: getattr(self, name) for name in OpenOptions.__slots__})


_SYMBOLS = ("desired_capabilities", "offered_capabilities", "outgoing_locales", "incoming_locales")


class OpenKeywords(TypedDict, total=False):
    """The fields of ``OpenOptions``, for functions that take them as keywords."""

    idle_timeout: float | None
    max_frame_size: int | None
    channel_max: int | None
    properties: dict[Any, Any] | None
    desired_capabilities: str | Iterable[str]
    offered_capabilities: str | Iterable[str]
    outgoing_locales: str | Iterable[str]
    incoming_locales: str | Iterable[str]
    limits: Limits | None
    strict: bool | Strict | None


def symbols(given: str | Iterable[str], name: str = "capabilities") -> tuple[str, ...]:
    """Return capabilities or locales as a tuple; a single str is one item."""
    if isinstance(given, str):
        return (given,)
    check_type(name, given, Iterable, "a str, or several")
    return tuple(given)


def strictness(given: bool | Strict | None) -> Strict:
    """Return which rules to enforce: all, none, or as given.

    None means the defaults of ``Strict``.
    """
    if isinstance(given, Strict):
        return given
    return DEFAULT_STRICT if given is None else Strict.all(given)
