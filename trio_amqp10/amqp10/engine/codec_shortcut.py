"""Fast codec of transfer and disposition, the frequent performatives.

Each function is a shortcut beside the generic codec, and tests check that both give the same result. A reader
returns None for a shape that it does not know, and the caller uses the generic codec; a writer falls back to
the generic codec itself. Without this module the engine would be slower, with the same behaviour.

Sections: 2.7.5 (transfer), 2.7.6 (disposition), 3.4.2 (accepted), 4.5.6 (transactional-state). Knows no link and no
session.
"""

from __future__ import annotations

from struct import Struct, error
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trio_amqp10.amqp10.spec.messaging import ACCEPTED, RELEASED, Accepted, Released
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Disposition, Role
from trio_amqp10.amqp10.wire.encode import encode

if TYPE_CHECKING:
    from collections.abc import Callable

Transferred: TypeAlias = "tuple[int, int | None, bytes | None, int | None, bool | None, bool, Any, int]"
"""Handle, delivery-id, tag, message-format, settled, more, state, and the end."""

TRANSFER: Final = b"\x00\x53\x14"
DISPOSITION: Final = b"\x00\x53\x15"

_UINT: Final = Struct(">I")

# The tail of a transfer, after its tag: message-format, settled, more, state (2.7.5). In every shape that peers write
# for format 0, the octets of the tail determine how many fields the list has.
_FORMATS = {b"\x43": 0, b"\x52\x00": 0, b"\x70\x00\x00\x00\x00": 0, b"\x40": None}
_FLAGS = {b"\x42": False, b"\x41": True, b"\x40": None}
_Tail: TypeAlias = "tuple[int, int | None, bool | None, bool, Any]"
_TAILS: Final[dict[bytes, _Tail]] = {b"": (3, None, None, False, None)}
for _fmt, _format in _FORMATS.items():
    _TAILS[_fmt] = (4, _format, None, False, None)
    for _flag, _settled in _FLAGS.items():
        _TAILS[_fmt + _flag] = (5, _format, _settled, False, None)
        for _flag2, _more in _FLAGS.items():
            _TAILS[_fmt + _flag + _flag2] = (6, _format, _settled, bool(_more), None)
            # qpid-proton writes the fields from rcv-settle-mode to batchable if any of them is set. The last
            # three (resume, aborted and batchable) are booleans, and may be false instead of null.
            for _n in range(1, 6):
                for _last in (b"\x40", b"\x42") if _n > 2 else (b"\x40",):
                    _TAILS[_fmt + _flag + _flag2 + b"\x40" * (_n - 1) + _last] = (
                        6 + _n,
                        _format,
                        _settled,
                        bool(_more),
                        None,
                    )
_BEFORE_STATE: Final = frozenset(octets for octets, values in _TAILS.items() if values[0] == 7)

_EMPTY_LISTS = (b"\x45", b"\xc0\x01\x00", b"\xd0\x00\x00\x00\x04\x00\x00\x00\x00")
_STATES: Final[dict[bytes, Any]] = {
    **{b"\x00\x53\x24" + empty: ACCEPTED for empty in _EMPTY_LISTS},
    **{b"\x00\x53\x26" + empty: RELEASED for empty in _EMPTY_LISTS},
}

# A transactional state is a list8 of a transaction-id, a short binary, and perhaps an outcome (4.5.6).
_TRANSACTIONAL: Final = b"\x00\x53\x34\xc0"
_MAX_TXN_ID: Final = 32
_COUNTED_OUTCOMES: Final[dict[bytes, Any]] = {
    b"\x01": None,
    b"\x02\x40": None,
    **{b"\x02" + octets: outcome for octets, outcome in _STATES.items()},
}
"""Outcomes in a transaction, by number of fields and octets after the id."""

_OUTCOMES: Final = {
    NoneType: b"",
    Accepted: b"\x00\x53\x24\xc0\x01\x00",
    Released: b"\x00\x53\x26\xc0\x01\x00",
}


def _read_state(octets: bytes) -> Any:
    """Return accepted, released, or their like in a transaction; None if unknown."""
    state = _STATES.get(octets)
    if state is not None or octets[:4] != _TRANSACTIONAL or len(octets) < 8:
        return state
    stop = 8 + octets[7]
    outcome = octets[5:6] + octets[stop:]
    if (
        octets[4] + 5 != len(octets)
        or octets[6] != 0xA0
        or stop > len(octets)
        or outcome not in _COUNTED_OUTCOMES
    ):
        return None
    return TransactionalState(txn_id=octets[8:stop], outcome=_COUNTED_OUTCOMES[outcome])


def _write_state(state: Any) -> bytes | None:
    """Return the octets of a transactional state of at most 48 octets, or None."""
    if state.__class__ is not TransactionalState:
        return None
    txn_id, outcome = state.txn_id, _OUTCOMES.get(state.outcome.__class__)
    if txn_id.__class__ is not bytes or len(txn_id) > _MAX_TXN_ID or outcome is None:
        return None
    size = 3 + len(txn_id) + len(outcome)
    return _TRANSACTIONAL + bytes((size, 2 if outcome else 1, 0xA0, len(txn_id))) + txn_id + outcome


def _read_transactional_tail(octets: bytes) -> _Tail | None:
    """Return the like of an entry of ``_TAILS`` for a tail with a state, or None."""
    before, descriptor, rest = octets.partition(_TRANSACTIONAL)
    size = 1 + rest[0] if rest else 0
    state = _read_state(descriptor + rest[:size])
    # With null in place of the state, it must be a tail that is known.
    known = _TAILS.get(before + b"\x40" + rest[size:])
    if state is None or known is None or before not in _BEFORE_STATE:
        return None
    return (*known[:4], state)


def read_transfer(buf: bytes, pos: int, end: int) -> Transferred | None:
    """Return the fields of a transfer of a common shape, or None.

    ``buf[pos:end]`` is the body of a frame that begins with ``TRANSFER``. None means that the shape is not
    known here: use the generic codec.
    """
    try:
        # A list8: one octet for the size, one for the number of fields.
        if buf[pos + 3] != 0xC0:
            return None
        stop = pos + 5 + buf[pos + 4]
        if stop > end:
            return None
        p = pos + 7
        code = buf[pos + 6]
        if code == 0x43:
            # The handle, a uint: uint0, smalluint, or four octets. It is mandatory.
            handle = 0
        elif code == 0x52:
            handle = buf[p]
            p += 1
        elif code == 0x70:
            handle = _UINT.unpack_from(buf, p)[0]
            p += 4
        else:
            return None
        code = buf[p]
        if code == 0x70:
            delivery_id: int | None = _UINT.unpack_from(buf, p + 1)[0]
            p += 5
        elif code == 0x52:
            delivery_id = buf[p + 1]
            p += 2
        elif code == 0x43:
            delivery_id = 0
            p += 1
        elif code == 0x40:
            delivery_id = None
            p += 1
        else:
            return None
        # The delivery-tag, a short binary. A transfer that continues a delivery may leave it out, as it may
        # the delivery-id (2.7.5).
        code = buf[p]
        if code == 0xA0:
            after = p + 2 + buf[p + 1]
            tag: bytes | None = buf[p + 2 : after]
            p = after
        elif code == 0x40:
            tag = None
            p += 1
        else:
            return None
    except (IndexError, error):
        return None
    # The rest of the list must be one of the known tails, and the number of fields must agree with the list
    # header.
    if p > stop:
        return None
    octets = buf[p:stop]
    tail = _TAILS.get(octets) or _read_transactional_tail(octets)
    if tail is None or tail[0] != buf[pos + 5]:
        return None
    return handle, delivery_id, tag, tail[1], tail[2], tail[3], tail[4], stop


class TransferReader:
    """A reader of the transfers of one session that remembers the usual shape.

    The transfers of a link differ only in delivery-id and tag, which stand at the same place. If two
    transfers in a row had the same *shape* (all octets except these two), the shape is kept, and a transfer
    that fits it is unpacked in one step. ``read_transfer`` reads all others.
    """

    __slots__ = ("_around", "_last", "_mark", "_size", "_split", "_tail", "_values")

    def __init__(self) -> None:
        self._split: Callable[[bytes, int], tuple[Any, ...]] | None = None
        self._last = self._around = self._mark = self._tail = b""
        self._size = 0
        self._values: tuple[int, int | None, bool | None, bool, Any] = (0, None, None, False, None)

    def read(self, buf: bytes, pos: int, end: int) -> Transferred | None:
        """Return what ``read_transfer`` returns for the same arguments."""
        if self._split is not None and pos + self._size <= end:
            around, delivery_id, mark, tag, tail = self._split(buf, pos)
            if around == self._around and mark == self._mark and tail == self._tail:
                handle, message_format, settled, more, state = self._values
                return handle, delivery_id, tag, message_format, settled, more, state, pos + self._size
        fields = read_transfer(buf, pos, end)
        if fields is not None:
            self._learn(buf, pos, fields)
        return fields

    def _learn(self, buf: bytes, pos: int, fields: Transferred) -> None:
        """Keep the shape of this transfer if the transfer before began alike."""
        handle, delivery_id, tag, message_format, settled, more, state, stop = fields
        # The octets up to and including the constructor of the delivery-id: their number depends on how the
        # handle is encoded.
        width = 8 if buf[pos + 6] == 0x43 else 9 if buf[pos + 6] == 0x52 else 12
        around = buf[pos : pos + width]
        if around != self._last:
            self._last = around
            return
        # A shape has a delivery-id of four octets and a tag, and is a whole message: other transfers are
        # rare.
        if around[-1] != 0x70 or delivery_id is None or tag is None or more:
            return
        self._size = stop - pos
        rest = self._size - width - 6 - len(tag)
        self._split = Struct(f">{width}sI2s{len(tag)}s{rest}s").unpack_from
        self._around, self._mark, self._tail = around, bytes((0xA0, len(tag))), buf[stop - rest : stop]
        self._values = (handle, message_format, settled, more, state)


_WHOLE: Final = Struct(">I16sI2sI2s")
_TAG: Final = b"\xa0\x04"
_SETTLED: Final = b"\x43\x41"
_UNSETTLED: Final = b"\x43\x42"

WHOLE_OVERHEAD: Final = _WHOLE.size
"""Octets of frame header and performative that ``write_transfer`` writes."""


def transfer_tail(state: Any) -> bytes | None:
    """Return the octets of a transfer from ``more`` to ``state``, or None.

    There are none for the state None.
    """
    if state is None:
        return b""
    octets = _write_state(state)
    return octets and b"\x40\x40" + octets


def transfer_head(channel: int, handle: int, tail: bytes = b"") -> bytes:
    """Return the octets that all transfers of a link with this ``tail`` share.

    They reach from the data offset of the frame header to the constructor of the delivery-id.
    """
    size = _WHOLE.size - 4 - 4 - len(TRANSFER) - 2 + len(tail)
    return (
        b"\x02\x00"
        + channel.to_bytes(2, "big")
        + TRANSFER
        + bytes((0xC0, size, 8 if tail else 5, 0x70))
        + _UINT.pack(handle)
        + b"\x70"
    )


def write_transfer(head: bytes, frame_size: int, delivery_id: int, tag: int, settled: bool) -> bytes:
    """Return frame header and performative of a whole message under a 4-octet tag.

    The tail that ``head`` was made for must follow.
    """
    return _WHOLE.pack(frame_size, head, delivery_id, _TAG, tag, _SETTLED if settled else _UNSETTLED)


def read_disposition(buf: bytes, pos: int, end: int) -> tuple[bool, int, int, bool, Any] | None:
    """Return role, first, last, settled and state of a plain disposition, or None.

    ``buf[pos:end]`` is the body of a frame that begins with ``DISPOSITION``. None means that the shape is not
    known here: use the generic codec.
    """
    try:
        if buf[pos + 3] != 0xC0 or pos + 5 + buf[pos + 4] != end:
            return None
        # The fields are role, first, last, settled, state, and perhaps batchable (2.7.6).
        count = buf[pos + 5]
        code = buf[pos + 6]
        if code not in (0x41, 0x42) or count not in (5, 6):
            return None
        p = pos + 7
        ids: list[int] = []
        for _ in range(2):
            code = buf[p]
            if code == 0x70:
                ids.append(_UINT.unpack_from(buf, p + 1)[0])
                p += 5
            elif code == 0x52:
                ids.append(buf[p + 1])
                p += 2
            elif code == 0x43:
                ids.append(0)
                p += 1
            # A null ``last`` means the same as ``first``.
            elif code == 0x40 and ids:
                ids.append(ids[0])
                p += 1
            else:
                return None
        flag = buf[p]
        if flag not in (0x40, 0x41, 0x42):
            return None
    except (IndexError, error):
        return None
    stop = end
    if count == 6:
        if buf[end - 1] not in (0x40, 0x41, 0x42):  # batchable is a hint: its value is ignored
            return None
        stop = end - 1
    state = _read_state(buf[p + 1 : stop])
    if state is None:
        return None
    return buf[pos + 6] == 0x41, ids[0], ids[1], flag == 0x41, state


_ACCEPTED_HEAD: Final = DISPOSITION + b"\xc0\x13\x05\x41\x70"
_ACCEPTED_TAIL: Final = b"\x41\x00\x53\x24\xc0\x01\x00"


def write_disposition(role: bool, first: int, last: int, settled: bool, state: Any) -> bytes:
    """Return the body of a disposition.

    The usual ones, of a receiver that accepts and settles, or in a transaction, are written without the generic
    codec.
    """
    if state is ACCEPTED and settled and role is Role.RECEIVER:
        return _ACCEPTED_HEAD + _UINT.pack(first) + b"\x70" + _UINT.pack(last) + _ACCEPTED_TAIL
    octets = _write_state(state)
    if octets is not None:
        head = DISPOSITION + bytes((0xC0, 13 + len(octets), 5, 0x41 if role else 0x42, 0x70))
        flag = b"\x41" if settled else b"\x40"
        return head + _UINT.pack(first) + b"\x70" + _UINT.pack(last) + flag + octets
    return encode(
        Disposition(
            role=role, first=first, last=None if last == first else last, settled=settled, state=state
        )
    )
