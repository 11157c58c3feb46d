"""Declarations of commands: ``@command``, and tables of commands (RFC 006, 3.1.1).

A command is declared as a class with its fields in the order of the wire::

    @command(29, "channel close", sender=BOTH)
    class ChannelClose(Command):
        channel_id: short = 0
        reply_code: short = 200
        reply_text: shortstr = ""

When the class is created, each annotation provides the reader and writer of its field. Adjacent bits share an octet, the low bit
first. The result is a ``Plan``. The commands of the document are in ``spec``, not here.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, dataclass_transform

from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .faults import ReplyError
from .fields import BIT, FieldType, bit, long, longstr, octet, short, shortstr, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Command",
    "CommandTable",
    "Plan",
    "Record",
    "bit",
    "command",
    "long",
    "longstr",
    "octet",
    "record",
    "short",
    "shortstr",
    "table",
]

C = TypeVar("C", bound="Record")


class Plan:
    """The codec of one command or record.

    Attributes:
        id: the octet that identifies the command; None for a record.
        name: the name in the document, such as ``handle send``.
        sender: which end may send it.
        fields: names and types of the fields, in order.
    """

    __slots__ = ("_runs", "fields", "id", "made", "name", "sender")

    def __init__(
        self,
        made: type[Record],
        number: int | None,
        name: str,
        sender: EndpointRole,
        fields: tuple[tuple[str, FieldType], ...],
    ) -> None:
        self.made: type[Record] = made
        self.id: Final = number
        self.name: str = name
        self.sender: EndpointRole = sender
        self.fields: tuple[tuple[str, FieldType], ...] = fields
        self._runs = tuple(_runs(made, fields))

    def read(self, buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        """Decode the fields at ``pos``; return the record and the offset after it.

        Raises:
            ReplyError: 502; the text begins with the name of the wrong field.
        """
        made = object.__new__(self.made)
        for kind, setters, names in self._runs:
            try:
                value, pos = kind.read(buf, pos, end)
            except ReplyError as fault:
                raise ReplyError(fault.code, f"{names[0]} of {self.name}: {fault.description}") from None
            if kind is BIT:
                for place, setter in enumerate(setters):
                    setter(made, bool(value >> place & 1))
            else:
                setters[0](made, value)
        return made, pos

    def write(self, out: bytearray, made: Record) -> None:
        """Append the encoded fields.

        Raises:
            LocalProtocolError: a value is invalid for its field; the message names the field.
        """
        for kind, _, names in self._runs:
            try:
                if kind is BIT:
                    out.append(sum(1 << place for place, name in enumerate(names) if getattr(made, name)))
                else:
                    kind.write(out, getattr(made, names[0]))
            except LocalProtocolError as error:
                raise LocalProtocolError(f"{names[0]} of {self.name}: {error}") from error

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _runs(
    made: type[Record], fields: Iterable[tuple[str, FieldType]]
) -> Iterator[tuple[FieldType, list[Callable[[Any, Any], None]], list[str]]]:
    """Group the fields by octets: single fields, and adjacent bits (at most eight)."""
    run: tuple[FieldType, list[Callable[[Any, Any], None]], list[str]] | None = None
    for name, kind in fields:
        if run is not None and not (kind is BIT and run[0] is BIT):
            yield run
            run = None
        run = run or (kind, [], [])
        run[1].append(made.__dict__[name].__set__)
        run[2].append(name)
    assert run is not None
    yield run


class Record:
    """A sequence of fields; ``plan`` encodes and decodes them."""

    __slots__ = ()
    plan: ClassVar[Plan]


class Command(Record):
    """Base class of commands."""

    __slots__ = ()

    def encode(self) -> bytes:
        """Return the octet of the command and its encoded fields.

        Raises:
            LocalProtocolError: see ``Plan.write``.
        """
        assert self.plan.id is not None
        out = bytearray((self.plan.id,))
        self.plan.write(out, self)
        return bytes(out)


def _decorator(number: int | None, name: str, sender: EndpointRole) -> Callable[[type[C]], type[C]]:
    def decorate(cls: type[C]) -> type[C]:
        hints = typing.get_type_hints(cls, include_extras=True)
        hints.pop("plan")
        fields = tuple((each, _field_type(hint)) for each, hint in hints.items())
        made: Any = dataclasses.dataclass(slots=True, kw_only=True)(cls)
        made.plan = Plan(made, number, name, sender, fields)
        return typing.cast("type[C]", made)

    return decorate


def _field_type(annotation: Any) -> FieldType:
    """Return the field type in an annotation; raise ``TypeError`` if there is none."""
    mark = getattr(annotation, "__metadata__", (None,))[0]
    if not isinstance(mark, FieldType):
        raise TypeError(f"{annotation} is not a type of field")
    return mark


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def command(number: int, name: str, *, sender: EndpointRole) -> Callable[[type[C]], type[C]]:
    """Turn a class of annotated fields into a command; see this module's docstring.

    Raises:
        TypeError: an annotation has no field type.
    """
    return _decorator(number, name, sender)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def record(name: str) -> Callable[[type[C]], type[C]]:
    """Turn a class of annotated fields into a record that is not a command."""
    return _decorator(None, name, EndpointRole.BOTH)


class CommandTable:
    """A set of commands, by their octet.

    Args:
        commands: classes made by ``@command``.
    """

    __slots__ = ("_by_id",)

    def __init__(self, commands: Iterable[type[Command]]) -> None:
        self._by_id: dict[int, Plan] = {}
        for each in commands:
            assert each.plan.id is not None
            self._by_id[each.plan.id] = each.plan

    def __iter__(self) -> Iterator[Plan]:
        return iter(self._by_id.values())

    def read(self, payload: bytes) -> Command:
        """Decode the command in a frame; ``payload`` excludes the end octet of the frame.

        Raises:
            ReplyError: 501: unknown command; 502: a field is wrong, or octets are left.
        """
        plan = self._by_id.get(payload[0])
        if plan is None:
            raise ReplyError(ReplyCodeRfc011.FRAMING_ERROR, f"there is no command {payload[0]}")
        made, pos = plan.read(payload, 1, len(payload))
        if pos != len(payload):
            raise ReplyError(
                ReplyCodeRfc011.SYNTAX_ERROR,
                f"{plan.name} has {len(payload) - pos} octets after its last field",
            )
        return typing.cast("Command", made)
