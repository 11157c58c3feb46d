"""The options of an open performative, each declared once (2.7.1).

``open_connection`` and ``serve`` describe the options for users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.frames import MIN_MAX_FRAME_SIZE
from trio_amqp10.protocol_rules import Strict

from .limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OpenKeywords", "OpenOptions", "strictness", "symbols"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    """Options of a connection, the same for the end that dials and the end that accepts.

    Raises:
        LocalProtocolError: an option that is not a number, or a frame size below the minimum (2.7.1).
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
        for name in _SYMBOLS:  # an iterator can be read only once
            object.__setattr__(self, name, symbols(getattr(self, name)))
        _check_number("idle_timeout", self.idle_timeout)
        _check_number("max_frame_size", self.max_frame_size)
        _check_number("channel_max", self.channel_max)
        size = self.effective_limits.max_frame_size
        if size < MIN_MAX_FRAME_SIZE:
            raise LocalProtocolError(
                f"max_frame_size={size}: expected at least {MIN_MAX_FRAME_SIZE} octets (2.7.1)"
            )

    @property
    def effective_limits(self) -> Limits:
        """The limits, with the two that have options of their own."""
        limits = self.limits or Limits()
        if self.max_frame_size is not None:
            limits = replace(limits, max_frame_size=self.max_frame_size)
        if self.channel_max is not None:
            limits = replace(limits, channel_max=self.channel_max)
        return limits

    def keywords(self) -> OpenKeywords:
        """These options as keyword arguments."""
        return cast("OpenKeywords", {name: getattr(self, name) for name in OpenOptions.__slots__})


_SYMBOLS = ("desired_capabilities", "offered_capabilities", "outgoing_locales", "incoming_locales")


def _check_number(name: str, value: object) -> None:
    """Refuse what a caller without a type checker may pass, e.g. a str from the environment."""
    if value is not None and not isinstance(value, (int, float)):
        raise LocalProtocolError(f"{name}={value!r}: a number or None is expected")


class OpenKeywords(TypedDict, total=False):
    """The fields of ``OpenOptions``, for a function that takes them as keyword arguments beside others."""

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


def symbols(given: str | Iterable[str]) -> tuple[str, ...]:
    """Capabilities or locales as a tuple; a single str is one of them."""
    return (given,) if isinstance(given, str) else tuple(given)


def strictness(given: bool | Strict | None) -> Strict:
    """Which rules to hold strictly: all, none, or as given; the defaults of ``Strict`` if None."""
    if isinstance(given, Strict):
        return given
    return Strict() if given is None else Strict.all(given)
