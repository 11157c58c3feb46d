"""From a declared method to its codec: ``@method``, argument types, method table.

See 0-9-1, 4.2.4. A method is declared as a class with its arguments in the order of the wire::

    @method(50, 10, "queue.declare", sender=CLIENT, synchronous=True)
    class QueueDeclare(Method):
        reserved_1: short = 0
        queue: shortstr = ""
        passive: bit = False
        durable: bit = False

When the class is created, each annotation gives the reader and the writer of its argument; consecutive bits
share octets, the low bit first (4.2.5.2). The result is a ``Plan``. Arguments whose name begins with
``reserved`` are read and written without a check. The methods of the specification are in ``spec``.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar, dataclass_transform

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .faults import ReplyError
from .fields import (
    Letters,
    Scan,
    from_seconds,
    read_short_string,
    read_table,
    to_seconds,
    write_short_string,
    write_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from trio_amqp10.core.endpoint_role import EndpointRole

M = TypeVar("M", bound="Method")

_IDS: Final = struct.Struct(">HH")


class FieldType(typing.NamedTuple):
    """The reader and the writer of one type of argument."""

    name: str
    read: Callable[[bytes, int, int, Scan], tuple[Any, int]]
    write: Callable[[bytearray, Any, Letters], None]


def _early(pos: int, size: int, end: int) -> ReplyError:
    return ReplyError(
        ReplyCode091.FRAME_ERROR, f"{size} octets at offset {pos}, but the arguments end at {end}"
    )


def _unsigned(name: str, form: str) -> FieldType:
    codec = struct.Struct(">" + form)
    size = codec.size

    def read(buf: bytes, pos: int, end: int, _scan: Scan) -> tuple[int, int]:
        if pos + size > end:
            raise _early(pos, size, end)
        return codec.unpack_from(buf, pos)[0], pos + size

    def write(out: bytearray, value: int, _letters: Letters) -> None:
        try:
            out += codec.pack(value)
        except struct.error as error:
            raise LocalProtocolError(f"{value!r} does not fit {8 * size} unsigned bits") from error

    return FieldType(name, read, write)


_LONG: Final = _unsigned("long", "I")
_LONGLONG: Final = _unsigned("longlong", "Q")


def _read_shortstr(buf: bytes, pos: int, end: int, _scan: Scan) -> tuple[str, int]:
    if pos >= end or pos + 1 + buf[pos] > end:
        raise _early(pos, 1 + buf[pos] if pos < end else 1, end)
    return read_short_string(buf, pos, end)


def _write_shortstr(out: bytearray, value: str, _letters: Letters) -> None:
    write_short_string(out, value)


def _read_longstr(buf: bytes, pos: int, end: int, scan: Scan) -> tuple[bytes, int]:
    size, pos = _LONG.read(buf, pos, end, scan)
    if pos + size > end:
        raise _early(pos, size, end)
    return bytes(buf[pos : pos + size]), pos + size


def _write_longstr(out: bytearray, value: Any, letters: Letters) -> None:
    if not isinstance(value, bytes):
        raise LocalProtocolError(f"a long string must be bytes, not {value!r}")
    _LONG.write(out, len(value), letters)
    out += value


def _read_table(buf: bytes, pos: int, end: int, scan: Scan) -> tuple[dict[str, Any], int]:
    if pos + 4 > end:
        raise _early(pos, 4, end)
    return read_table(buf, pos, end, scan)


def _read_timestamp(buf: bytes, pos: int, end: int, scan: Scan) -> tuple[Any, int]:
    seconds, pos = _LONGLONG.read(buf, pos, end, scan)
    return from_seconds(seconds), pos


def _write_timestamp(out: bytearray, value: datetime | int, letters: Letters) -> None:
    _LONGLONG.write(out, to_seconds(value), letters)


_BIT: Final = _unsigned("bit", "B")
"""The octet that contains bits; a ``Plan`` packs and unpacks them."""

octet = Annotated[int, _unsigned("octet", "B")]
short = Annotated[int, _unsigned("short", "H")]
long = Annotated[int, _LONG]
longlong = Annotated[int, _LONGLONG]
bit = Annotated[bool, _BIT]
shortstr = Annotated[str, FieldType("shortstr", _read_shortstr, _write_shortstr)]
longstr = Annotated[bytes, FieldType("longstr", _read_longstr, _write_longstr)]
table = Annotated[dict[str, Any], FieldType("table", _read_table, write_table)]
timestamp = Annotated[Any, FieldType("timestamp", _read_timestamp, _write_timestamp)]


def field_type_of(annotation: Any) -> FieldType:
    """Return the type in an annotation such as ``shortstr`` or ``shortstr | None``.

    Raises:
        TypeError: the annotation has none.
    """
    for each in (annotation, *typing.get_args(annotation)):
        mark = getattr(each, "__metadata__", (None,))[0]
        if isinstance(mark, FieldType):
            return mark
    raise TypeError(f"no type of an argument: {annotation}")


class Plan:
    """One method: its declaration and its codec.

    Attributes:
        name: the name in the specification, such as ``queue.declare-ok``.
        class_id: the class's number.
        method_id: the method's number within the class.
        sender: the role that may send it.
        synchronous: whether the sender waits for an answer, unless ``no_wait`` is set.
        content: whether a content header and bodies follow.
        answers: the requests that it answers; none for a request, and for a method without an answer.
        arguments: names and types, in order.
    """

    __slots__ = (
        "_runs",
        "answers",
        "arguments",
        "class_id",
        "content",
        "made",
        "method_id",
        "name",
        "prefix",
        "sender",
        "synchronous",
    )

    def __init__(
        self,
        made: type[Method],
        ids: tuple[int, int],
        name: str,
        sender: EndpointRole,
        synchronous: bool,
        content: bool,
        answers: tuple[type[Method], ...],
        arguments: tuple[tuple[str, FieldType], ...],
    ) -> None:
        self.made: type[Method] = made
        self.class_id: int = ids[0]
        self.method_id: int = ids[1]
        self.prefix: bytes = _IDS.pack(*ids)
        self.name: str = name
        self.sender: EndpointRole = sender
        self.synchronous: Final = synchronous
        self.content: Final = content
        self.answers: Final = answers
        self.arguments: Final = arguments
        self._runs = tuple(_runs(made, arguments))

    def waits(self, made: Method) -> bool:
        """Whether this request needs an answer: synchronous, and ``no_wait`` is not set."""
        return self.synchronous and not getattr(made, "no_wait", False)

    def read(self, payload: bytes, letters: Letters) -> Method:
        """Read the method in a payload, after its four octets of numbers.

        Raises:
            ReplyError: 501, there are too few or too many octets; 502, a table or a short string is not valid.
        """
        made = object.__new__(self.made)
        pos, end, scan = 4, len(payload), Scan(letters)
        try:
            for kind, setters, _ in self._runs:
                value, pos = kind.read(payload, pos, end, scan)
                if kind is _BIT:
                    for place, setter in enumerate(setters):
                        setter(made, bool(value >> place & 1))
                else:
                    setters[0](made, value)
            if pos != end:
                raise ReplyError(
                    ReplyCode091.FRAME_ERROR, f"{end - pos} octets after the last argument of {self.name}"
                )
        except ReplyError as fault:
            raise fault.about(self.class_id, self.method_id) from None
        return made

    def write(self, made: Method, letters: Letters) -> bytes:
        """Return the payload of a method frame (4.2.4).

        Raises:
            LocalProtocolError: an argument does not fit its type; the message names it.
        """
        out = bytearray(self.prefix)
        for kind, _, names in self._runs:
            try:
                if kind is _BIT:
                    out.append(sum(1 << place for place, name in enumerate(names) if getattr(made, name)))
                else:
                    kind.write(out, getattr(made, names[0]), letters)
            except LocalProtocolError as error:
                raise LocalProtocolError(f"{self.name}, {names[0]}: {error}") from error
        return bytes(out)

    def __repr__(self) -> str:
        return f"<{self.name} {self.class_id}.{self.method_id}>"


def _runs(
    made: type[Method], arguments: Iterable[tuple[str, FieldType]]
) -> Iterator[tuple[FieldType, list[Callable[[Any, Any], None]], list[str]]]:
    """Group arguments that share octets: one argument, or up to eight bits."""
    run: tuple[FieldType, list[Callable[[Any, Any], None]], list[str]] | None = None
    for name, kind in arguments:
        if run is not None and not (kind is _BIT and run[0] is _BIT and len(run[2]) < 8):
            yield run
            run = None
        if run is None:
            run = (kind, [], [])
        run[1].append(getattr(made, name).__set__)
        run[2].append(name)
    if run is not None:
        yield run


class Method:
    """The base class of all methods; ``plan`` describes the method of a class."""

    __slots__ = ()
    plan: ClassVar[Plan]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def method(
    class_id: int,
    method_id: int,
    name: str,
    *,
    sender: EndpointRole,
    synchronous: bool = False,
    content: bool = False,
    answers: tuple[type[Method], ...] = (),
) -> Callable[[type[M]], type[M]]:
    """Make a class decorator for a method; see the module's docstring for an example.

    Raises:
        TypeError: an annotation is not an argument type.
    """

    def decorate(cls: type[M]) -> type[M]:
        hints = typing.get_type_hints(cls, include_extras=True)
        hints.pop("plan")
        arguments = tuple((each, field_type_of(hint)) for each, hint in hints.items())
        made: Any = dataclasses.dataclass(slots=True, kw_only=True)(cls)
        made.plan = Plan(made, (class_id, method_id), name, sender, synchronous, content, answers, arguments)
        return typing.cast("type[M]", made)

    return decorate


class MethodTable:
    """The methods that an engine supports, by number.

    An extension makes a table of its own.

    Args:
        methods: classes made by ``@method``.
    """

    __slots__ = ("_by_ids", "by_name")

    by_name: Mapping[str, Plan]
    """Each plan by its method's name."""

    def __init__(self, methods: Iterable[type[Method]]) -> None:
        self._by_ids = {(each.plan.class_id, each.plan.method_id): each.plan for each in methods}
        self.by_name = {plan.name: plan for plan in self._by_ids.values()}

    def __iter__(self) -> Iterator[Plan]:
        return iter(self._by_ids.values())

    def make(self, name: str, /, **arguments: Any) -> Any:
        """Create a method by its name, for code that is common to several versions.

        Raises:
            LocalProtocolError: the version has no method of this name.
        """
        plan = self.by_name.get(name)
        if plan is None:
            raise LocalProtocolError(f"this version of the protocol has no {name}")
        made: Any = plan.made
        return made(**arguments)

    def plan_in(self, payload: bytes) -> Plan:
        """Return the plan of the method in a payload.

        Raises:
            ReplyError: 501, the payload is too short for the numbers of a class and a method; 503, the method
                is unknown.
        """
        if len(payload) < 4:
            raise ReplyError(
                ReplyCode091.FRAME_ERROR, f"a method frame with a payload of {len(payload)} octets"
            )
        ids = _IDS.unpack_from(payload)
        plan = self._by_ids.get(ids)
        if plan is None:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"unknown method {ids[0]}.{ids[1]}", *ids)
        return plan

    def read(self, payload: bytes, letters: Letters) -> Method:
        """Read the payload of a method frame (4.2.4).

        Raises:
            ReplyError: see ``plan_in`` and ``Plan.read``.
        """
        return self.plan_in(payload).read(payload, letters)
