"""Compare the frame that a script expects with the frame that arrived.

Knows composites and octets; knows no stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import ndiff
from typing import TYPE_CHECKING, Any, cast

from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.tools.trace.frame_text import describe, hexdump

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_splitter import Piece


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expected frame.

    Args:
        cls: the class of its performative.
        fields: the expected fields; a field that is not named may have any value. None means that a field
            is absent and has no default, a mapping compares some fields of a composite, and a function
            returns whether it accepts the value.
        channel: the expected channel; None for any.
        payload: the expected octets after the performative; None for any.

    Raises:
        TypeError: the class has no such field.
    """

    cls: type[Any]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    channel: int | None = None
    payload: bytes | None = None

    def __post_init__(self) -> None:
        _check_names(self.cls, self.fields)

    @classmethod
    def of(cls, performative: Any, channel: int | None = None, payload: bytes | None = None) -> Expectation:
        """Expect exactly this performative."""
        return cls(performative.__class__, _values(performative), channel, payload)

    def differences(self, piece: Piece) -> list[str]:
        """Return lines that describe each difference; empty if there is none."""
        if type(piece.performative) is not self.cls:
            return [f"expected {self.cls.__name__}, got {describe(piece)}"]
        lines: list[str] = []
        if self.channel is not None and piece.channel != self.channel:
            lines += _both("channel", self.channel, piece.channel)
        lines += _compared(self.fields, piece.performative, "")
        if self.payload is not None and piece.payload != self.payload:
            lines += ["payload:", *octet_differences(self.payload, piece.payload)]
        return [*lines, f"in {describe(piece)}"] if lines else []


def octet_differences(want: bytes, got: bytes) -> list[str]:
    """Compare two hexdumps: ``-`` lines are expected, ``+`` lines arrived.

    Return an empty list if the octets are equal.
    """
    if want == got:
        return []
    lines = ndiff(hexdump(want), hexdump(got))
    return [f"    {line}" for line in lines if not line.startswith("?")]


def _compared(fields: Mapping[str, Any], composite: Any, path: str) -> list[str]:
    lines: list[str] = []
    for name, want in fields.items():
        got = getattr(composite, name)
        where = f"{path}{name}"
        if isinstance(want, Mapping) and hasattr(got, "__amqp__"):
            _check_names(got.__class__, cast("Mapping[str, Any]", want))
            lines += _compared(cast("Mapping[str, Any]", want), got, f"{where}.")
        elif not _agrees(want, got):
            lines += _both(where, want, got)
    return lines


def _agrees(want: Any, got: Any) -> bool:
    if callable(want):
        return bool(want(got))
    if isinstance(want, bool) is not isinstance(got, bool):
        return False
    if isinstance(want, list):
        want = tuple(cast("Any", want))  # fields with multiple values are tuples
    return bool(want == got)


def _both(name: str, want: Any, got: Any) -> list[str]:
    shown = f"a value that {want.__name__} accepts" if callable(want) else repr(want)
    return [f"{name}: expected {shown}", f"{' ' * len(name)}  got      {got!r}"]


def _values(composite: Any) -> dict[str, Any]:
    plan = plan_of(composite.__class__)
    return {each.name: value for each, value in zip(plan.fields, plan.values(composite), strict=True)}


def _check_names(cls: type[Any], fields: Mapping[str, Any]) -> None:
    known = [each.name for each in plan_of(cls).fields]
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise TypeError(f"{cls.__name__} has no field {unknown[0]!r}; it has {', '.join(known)}")
