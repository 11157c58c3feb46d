"""Compare what a script expects with what came, field by field.

Knows composites and octets; knows no stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import ndiff
from typing import TYPE_CHECKING, Any, cast

from trio_amqp10.trace.frame_text import describe, hexdump
from trio_amqp10.wire.composite import plan_of

if TYPE_CHECKING:
    from trio_amqp10.trace.frame_splitter import Piece

__all__ = ["Expectation", "octet_differences"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A frame as it should be.

    Args:
        cls: the class of its performative.
        fields: what its fields should be; those that are not named may be anything. None is for a field
            that is absent and has no default, a mapping for some fields of a composite, and a function
            says whether a value will do.
        channel: where it should come; None for anywhere.
        payload: what should follow the performative; None for anything.

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
        """The frame that carries just this performative."""
        return cls(performative.__class__, _values(performative), channel, payload)

    def differences(self, piece: Piece) -> list[str]:
        """What is not as expected, a line or two for each; empty when all is."""
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
    """Two hexdumps, line by line: ``-`` what was expected, ``+`` what came; empty when they are equal."""
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
        want = tuple(cast("Any", want))  # fields that may be several are tuples
    return bool(want == got)


def _both(name: str, want: Any, got: Any) -> list[str]:
    shown = f"what {want.__name__} takes" if callable(want) else repr(want)
    return [f"{name}: expected {shown}", f"{' ' * len(name)}  got      {got!r}"]


def _values(composite: Any) -> dict[str, Any]:
    plan = plan_of(composite.__class__)
    return {each.name: value for each, value in zip(plan.fields, plan.values(composite), strict=True)}


def _check_names(cls: type[Any], fields: Mapping[str, Any]) -> None:
    known = [each.name for each in plan_of(cls).fields]
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise TypeError(f"{cls.__name__} has no field {unknown[0]!r}; it has {', '.join(known)}")
