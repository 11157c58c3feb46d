"""Generated readers and writers of header and properties (3.2.1, 3.2.4).

``python -m tests.amqp10.message.header_and_properties_source`` writes this module from the declarations in
``spec.messaging``: change those, or that program, but not this module. A function knows only the usual shape and
returns None for any other; then the general codec decides whether that is an error, and which. Tests check that
both give the same result.

=========  =========================================================================================
reads      a ``list8`` whose fields are null or scalars of the field's own type, from the ``00`` of
           the section to the end that its size defines. The result is that of ``decode``, filled
           up with None: free values remember their wire type
writes     a ``list8`` of checked fields, with its descriptor before it; no octets if all
           fields are None
=========  =========================================================================================
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from trio_amqp10.amqp10.wire.codes import (
    BINARY8,
    BINARY32,
    BOOLEAN,
    DESCRIBED,
    FALSE,
    LIST8,
    NULL,
    SMALL_UINT,
    SMALL_ULONG,
    STRING8,
    STRING32,
    SYMBOL8,
    SYMBOL32,
    TIMESTAMP,
    TRUE,
    UBYTE,
    UINT,
    UINT0,
    ULONG,
    ULONG0,
    UUID,
)
from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.shortcut_memos import (
    ENCODED_STRINGS,
    ENCODED_SYMBOLS,
    READ_FAULTS,
    STRING_HEADS,
    SYMBOLS,
    WRITE_FAULTS,
    encoder,
)
from trio_amqp10.amqp10.wire.values import ULong

_new_int: Final[Any] = int.__new__
_unpack_ulong: Final[Any] = Struct(">Q").unpack_from
_pack_ulong: Final[Any] = Struct(">BQ").pack
_binary: Final = encoder("binary")
_timestamp: Final = encoder("timestamp")
_uint: Final = encoder("uint")
_BINARY_READERS: Final = {BINARY8: SCALARS[BINARY8], BINARY32: SCALARS[BINARY32]}
_BOOLEAN_READERS: Final = {TRUE: SCALARS[TRUE], FALSE: SCALARS[FALSE], BOOLEAN: SCALARS[BOOLEAN]}
_ID_READERS: Final = {
    ULONG0: SCALARS[ULONG0],
    SMALL_ULONG: SCALARS[SMALL_ULONG],
    ULONG: SCALARS[ULONG],
    UUID: SCALARS[UUID],
    BINARY8: SCALARS[BINARY8],
    STRING8: SCALARS[STRING8],
    BINARY32: SCALARS[BINARY32],
    STRING32: SCALARS[STRING32],
}
_STRING_READERS: Final = {STRING8: SCALARS[STRING8], STRING32: SCALARS[STRING32]}
_SYMBOL_READERS: Final = {SYMBOL8: SCALARS[SYMBOL8], SYMBOL32: SCALARS[SYMBOL32]}
_TIMESTAMP_READERS: Final = {TIMESTAMP: SCALARS[TIMESTAMP]}
_UBYTE_READERS: Final = {UBYTE: SCALARS[UBYTE]}
_UINT_READERS: Final = {UINT0: SCALARS[UINT0], SMALL_UINT: SCALARS[SMALL_UINT], UINT: SCALARS[UINT]}
_COUNTS: Final = [bytes((count,)) for count in range(14)]
_NULLS: Final = [bytes((NULL,)) * count for count in range(13)]


def read_header(buf: bytes, start: int, end: int) -> list[Any] | None:
    """Return the fields of the header section, or None."""
    if buf[start + 1] != SMALL_ULONG or buf[start + 3] != LIST8:
        return None
    durable: Any = None
    priority: Any = None
    ttl: Any = None
    first_acquirer: Any = None
    delivery_count: Any = None

    try:
        count = buf[start + 5]
        pos = start + 6
        if count > 0:
            code = buf[pos]
            if code == TRUE:
                durable = True
                pos += 1
            elif code == NULL:
                pos += 1
            else:
                durable, pos = _BOOLEAN_READERS[code](buf, pos + 1, NO_BUDGET)
            if count > 1:
                code = buf[pos]
                if code == NULL:
                    pos += 1
                else:
                    priority, pos = _UBYTE_READERS[code](buf, pos + 1, NO_BUDGET)
                if count > 2:
                    code = buf[pos]
                    if code == NULL:
                        pos += 1
                    else:
                        ttl, pos = _UINT_READERS[code](buf, pos + 1, NO_BUDGET)
                    if count > 3:
                        code = buf[pos]
                        if code == TRUE:
                            first_acquirer = True
                            pos += 1
                        elif code == NULL:
                            pos += 1
                        else:
                            first_acquirer, pos = _BOOLEAN_READERS[code](buf, pos + 1, NO_BUDGET)
                        if count > 4:
                            code = buf[pos]
                            if code == NULL:
                                pos += 1
                            else:
                                delivery_count, pos = _UINT_READERS[code](buf, pos + 1, NO_BUDGET)

    except READ_FAULTS:
        return None
    return [durable, priority, ttl, first_acquirer, delivery_count] if pos == end and count <= 5 else None


def read_properties(buf: bytes, start: int, end: int) -> list[Any] | None:
    """Return the fields of the properties section, or None."""
    if buf[start + 1] != SMALL_ULONG or buf[start + 3] != LIST8:
        return None
    message_id: Any = None
    user_id: Any = None
    to: Any = None
    subject: Any = None
    reply_to: Any = None
    correlation_id: Any = None
    content_type: Any = None
    content_encoding: Any = None
    absolute_expiry_time: Any = None
    creation_time: Any = None
    group_id: Any = None
    group_sequence: Any = None
    reply_to_group_id: Any = None

    try:
        count = buf[start + 5]
        pos = start + 6
        if count > 0:
            code = buf[pos]
            if code == STRING8:
                stop = pos + 2 + buf[pos + 1]
                message_id = buf[pos + 2 : stop].decode()
                pos = stop
            elif code == NULL:
                pos += 1
            elif code == ULONG:
                message_id = _new_int(ULong, _unpack_ulong(buf, pos + 1)[0])
                pos += 9
            else:
                message_id, pos = _ID_READERS[code](buf, pos + 1, NO_BUDGET)
            if count > 1:
                code = buf[pos]
                if code == NULL:
                    pos += 1
                else:
                    user_id, pos = _BINARY_READERS[code](buf, pos + 1, NO_BUDGET)
                if count > 2:
                    code = buf[pos]
                    if code == STRING8:
                        stop = pos + 2 + buf[pos + 1]
                        to = buf[pos + 2 : stop].decode()
                        pos = stop
                    elif code == NULL:
                        pos += 1
                    else:
                        to, pos = _STRING_READERS[code](buf, pos + 1, NO_BUDGET)
                    if count > 3:
                        code = buf[pos]
                        if code == STRING8:
                            stop = pos + 2 + buf[pos + 1]
                            subject = buf[pos + 2 : stop].decode()
                            pos = stop
                        elif code == NULL:
                            pos += 1
                        else:
                            subject, pos = _STRING_READERS[code](buf, pos + 1, NO_BUDGET)
                        if count > 4:
                            code = buf[pos]
                            if code == STRING8:
                                stop = pos + 2 + buf[pos + 1]
                                reply_to = buf[pos + 2 : stop].decode()
                                pos = stop
                            elif code == NULL:
                                pos += 1
                            else:
                                reply_to, pos = _STRING_READERS[code](buf, pos + 1, NO_BUDGET)
                            if count > 5:
                                code = buf[pos]
                                if code == STRING8:
                                    stop = pos + 2 + buf[pos + 1]
                                    correlation_id = buf[pos + 2 : stop].decode()
                                    pos = stop
                                elif code == NULL:
                                    pos += 1
                                elif code == ULONG:
                                    correlation_id = _new_int(ULong, _unpack_ulong(buf, pos + 1)[0])
                                    pos += 9
                                else:
                                    correlation_id, pos = _ID_READERS[code](buf, pos + 1, NO_BUDGET)
                                if count > 6:
                                    code = buf[pos]
                                    if code == SYMBOL8:
                                        stop = pos + 2 + buf[pos + 1]
                                        content_type = SYMBOLS[buf[pos + 2 : stop]]
                                        pos = stop
                                    elif code == NULL:
                                        pos += 1
                                    else:
                                        content_type, pos = _SYMBOL_READERS[code](buf, pos + 1, NO_BUDGET)
                                    if count > 7:
                                        code = buf[pos]
                                        if code == SYMBOL8:
                                            stop = pos + 2 + buf[pos + 1]
                                            content_encoding = SYMBOLS[buf[pos + 2 : stop]]
                                            pos = stop
                                        elif code == NULL:
                                            pos += 1
                                        else:
                                            content_encoding, pos = _SYMBOL_READERS[code](
                                                buf, pos + 1, NO_BUDGET
                                            )
                                        if count > 8:
                                            code = buf[pos]
                                            if code == NULL:
                                                pos += 1
                                            else:
                                                absolute_expiry_time, pos = _TIMESTAMP_READERS[code](
                                                    buf, pos + 1, NO_BUDGET
                                                )
                                            if count > 9:
                                                code = buf[pos]
                                                if code == NULL:
                                                    pos += 1
                                                else:
                                                    creation_time, pos = _TIMESTAMP_READERS[code](
                                                        buf, pos + 1, NO_BUDGET
                                                    )
                                                if count > 10:
                                                    code = buf[pos]
                                                    if code == STRING8:
                                                        stop = pos + 2 + buf[pos + 1]
                                                        group_id = buf[pos + 2 : stop].decode()
                                                        pos = stop
                                                    elif code == NULL:
                                                        pos += 1
                                                    else:
                                                        group_id, pos = _STRING_READERS[code](
                                                            buf, pos + 1, NO_BUDGET
                                                        )
                                                    if count > 11:
                                                        code = buf[pos]
                                                        if code == NULL:
                                                            pos += 1
                                                        else:
                                                            group_sequence, pos = _UINT_READERS[code](
                                                                buf, pos + 1, NO_BUDGET
                                                            )
                                                        if count > 12:
                                                            code = buf[pos]
                                                            if code == STRING8:
                                                                stop = pos + 2 + buf[pos + 1]
                                                                reply_to_group_id = buf[
                                                                    pos + 2 : stop
                                                                ].decode()
                                                                pos = stop
                                                            elif code == NULL:
                                                                pos += 1
                                                            else:
                                                                reply_to_group_id, pos = _STRING_READERS[
                                                                    code
                                                                ](buf, pos + 1, NO_BUDGET)

    except READ_FAULTS:
        return None
    return (
        [
            message_id,
            user_id,
            to,
            subject,
            reply_to,
            correlation_id,
            content_type,
            content_encoding,
            absolute_expiry_time,
            creation_time,
            group_id,
            group_sequence,
            reply_to_group_id,
        ]
        if pos == end and count <= 13
        else None
    )


_PROPERTIES_HEADS: Final = [bytes((DESCRIBED, SMALL_ULONG, 0x73, LIST8, size)) for size in range(256)]


def write_properties(fields: list[Any]) -> bytes | None:
    """Return the properties section of these fields, or None."""
    (
        message_id,
        user_id,
        to,
        subject,
        reply_to,
        correlation_id,
        content_type,
        content_encoding,
        absolute_expiry_time,
        creation_time,
        group_id,
        group_sequence,
        reply_to_group_id,
    ) = fields
    parts = [b""]
    append = parts.append
    count = 0
    try:
        if message_id is not None:
            if message_id.__class__ is str:
                octets = message_id.encode()
                append(STRING_HEADS[len(octets)])
                append(octets)
            elif message_id.__class__ is ULong and message_id > 255:
                append(_pack_ulong(ULONG, message_id))
            else:
                append(encode(message_id))
            count = 1
        if user_id is not None:
            if count != 1:
                append(_NULLS[1 - count])
            append(_binary(user_id))
            count = 2
        if to is not None:
            if count != 2:
                append(_NULLS[2 - count])
            append(ENCODED_STRINGS[to])
            count = 3
        if subject is not None:
            if count != 3:
                append(_NULLS[3 - count])
            append(ENCODED_STRINGS[subject])
            count = 4
        if reply_to is not None:
            if count != 4:
                append(_NULLS[4 - count])
            append(ENCODED_STRINGS[reply_to])
            count = 5
        if correlation_id is not None:
            if count != 5:
                append(_NULLS[5 - count])
            if correlation_id.__class__ is str:
                octets = correlation_id.encode()
                append(STRING_HEADS[len(octets)])
                append(octets)
            elif correlation_id.__class__ is ULong and correlation_id > 255:
                append(_pack_ulong(ULONG, correlation_id))
            else:
                append(encode(correlation_id))
            count = 6
        if content_type is not None:
            if count != 6:
                append(_NULLS[6 - count])
            append(ENCODED_SYMBOLS[content_type])
            count = 7
        if content_encoding is not None:
            if count != 7:
                append(_NULLS[7 - count])
            append(ENCODED_SYMBOLS[content_encoding])
            count = 8
        if absolute_expiry_time is not None:
            if count != 8:
                append(_NULLS[8 - count])
            append(_timestamp(absolute_expiry_time))
            count = 9
        if creation_time is not None:
            if count != 9:
                append(_NULLS[9 - count])
            append(_timestamp(creation_time))
            count = 10
        if group_id is not None:
            if count != 10:
                append(_NULLS[10 - count])
            append(ENCODED_STRINGS[group_id])
            count = 11
        if group_sequence is not None:
            if count != 11:
                append(_NULLS[11 - count])
            append(_uint(group_sequence))
            count = 12
        if reply_to_group_id is not None:
            if count != 12:
                append(_NULLS[12 - count])
            append(ENCODED_STRINGS[reply_to_group_id])
            count = 13

    except WRITE_FAULTS:
        return None
    if not count:
        return b""
    parts[0] = _COUNTS[count]
    octets = b"".join(parts)
    return _PROPERTIES_HEADS[len(octets)] + octets if len(octets) < 256 else None
