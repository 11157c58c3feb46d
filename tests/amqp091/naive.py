"""A second reader and writer of 0-9-1, written for clearness alone: it shares no line with the product, and knows no bounds."""

from __future__ import annotations

import io
import struct
from typing import Any

# class, method, name, who sends it (c, s, b) and how (* synchronous, C with content), arguments with their types:
# o s l q = 8, 16, 32, 64 bits; S L = short and long string; T = table; b = bit.
ROWS = """
10 10 connection.start s* version_major:o version_minor:o server_properties:T mechanisms:L locales:L
10 11 connection.start-ok c client_properties:T mechanism:S response:L locale:S
10 20 connection.secure s* challenge:L
10 21 connection.secure-ok c response:L
10 30 connection.tune s* channel_max:s frame_max:l heartbeat:s
10 31 connection.tune-ok c channel_max:s frame_max:l heartbeat:s
10 40 connection.open c* virtual_host:S reserved_1:S reserved_2:b
10 41 connection.open-ok s reserved_1:S
10 50 connection.close b* reply_code:s reply_text:S class_id:s method_id:s
10 51 connection.close-ok b
10 60 connection.blocked s reason:S
10 61 connection.unblocked s
10 70 connection.update-secret c* new_secret:L reason:S
10 71 connection.update-secret-ok s
20 10 channel.open c* reserved_1:S
20 11 channel.open-ok s reserved_1:L
20 20 channel.flow b* active:b
20 21 channel.flow-ok b active:b
20 40 channel.close b* reply_code:s reply_text:S class_id:s method_id:s
20 41 channel.close-ok b
30 10 access.request c* realm:S exclusive:b passive:b active:b write:b read:b
30 11 access.request-ok s ticket:s
40 10 exchange.declare c* reserved_1:s exchange:S type:S passive:b durable:b auto_delete:b internal:b no_wait:b arguments:T
40 11 exchange.declare-ok s
40 20 exchange.delete c* reserved_1:s exchange:S if_unused:b no_wait:b
40 21 exchange.delete-ok s
40 30 exchange.bind c* reserved_1:s destination:S source:S routing_key:S no_wait:b arguments:T
40 31 exchange.bind-ok s
40 40 exchange.unbind c* reserved_1:s destination:S source:S routing_key:S no_wait:b arguments:T
40 51 exchange.unbind-ok s
50 10 queue.declare c* reserved_1:s queue:S passive:b durable:b exclusive:b auto_delete:b no_wait:b arguments:T
50 11 queue.declare-ok s queue:S message_count:l consumer_count:l
50 20 queue.bind c* reserved_1:s queue:S exchange:S routing_key:S no_wait:b arguments:T
50 21 queue.bind-ok s
50 30 queue.purge c* reserved_1:s queue:S no_wait:b
50 31 queue.purge-ok s message_count:l
50 40 queue.delete c* reserved_1:s queue:S if_unused:b if_empty:b no_wait:b
50 41 queue.delete-ok s message_count:l
50 50 queue.unbind c* reserved_1:s queue:S exchange:S routing_key:S arguments:T
50 51 queue.unbind-ok s
60 10 basic.qos c* prefetch_size:l prefetch_count:s global_:b
60 11 basic.qos-ok s
60 20 basic.consume c* reserved_1:s queue:S consumer_tag:S no_local:b no_ack:b exclusive:b no_wait:b arguments:T
60 21 basic.consume-ok s consumer_tag:S
60 30 basic.cancel b* consumer_tag:S no_wait:b
60 31 basic.cancel-ok b consumer_tag:S
60 40 basic.publish cC reserved_1:s exchange:S routing_key:S mandatory:b immediate:b
60 50 basic.return sC reply_code:s reply_text:S exchange:S routing_key:S
60 60 basic.deliver sC consumer_tag:S delivery_tag:q redelivered:b exchange:S routing_key:S
60 70 basic.get c* reserved_1:s queue:S no_ack:b
60 71 basic.get-ok sC delivery_tag:q redelivered:b exchange:S routing_key:S message_count:l
60 72 basic.get-empty s reserved_1:S
60 80 basic.ack b delivery_tag:q multiple:b
60 90 basic.reject c delivery_tag:q requeue:b
60 100 basic.recover-async c requeue:b
60 110 basic.recover c* requeue:b
60 111 basic.recover-ok s
60 120 basic.nack b delivery_tag:q multiple:b requeue:b
85 10 confirm.select c* no_wait:b
85 11 confirm.select-ok s
90 10 tx.select c*
90 11 tx.select-ok s
90 20 tx.commit c*
90 21 tx.commit-ok s
90 30 tx.rollback c*
90 31 tx.rollback-ok s
"""

METHODS = {
    (int(row[0]), int(row[1])): (row[2], row[3], [each.rsplit(":", 1) for each in row[4:]])
    for row in map(str.split, ROWS.strip().splitlines())
}

PROPERTIES = "SSTooSSSSqSSSS"
"""The types of the 14 properties, in the order of their flags; the tenth is a timestamp."""

NUMBERS = {
    "t": "?",
    "b": "b",
    "B": "B",
    "s": "h",
    "u": "H",
    "I": "i",
    "i": "I",
    "l": "q",
    "L": "q",
    "f": "f",
    "d": "d",
    "T": "Q",
}


def number(stream: io.BytesIO, form: str) -> Any:
    return struct.unpack(">" + form, stream.read(struct.calcsize(">" + form)))[0]


def value(stream: io.BytesIO) -> Any:
    letter = chr(number(stream, "B"))
    if letter in NUMBERS:
        return letter, number(stream, NUMBERS[letter])
    if letter == "D":
        return letter, (number(stream, "B"), number(stream, "i"))
    if letter in "Sx":
        return letter, stream.read(number(stream, "I"))
    if letter == "V":
        return letter, None
    inner = io.BytesIO(stream.read(number(stream, "I")))
    if letter == "F":
        return letter, pairs(inner)
    assert letter == "A", letter
    found = []
    while inner.tell() < len(inner.getvalue()):
        found.append(value(inner))
    return letter, found


def pairs(stream: io.BytesIO) -> list[tuple[bytes, Any]]:
    found = []
    while stream.tell() < len(stream.getvalue()):
        name = stream.read(number(stream, "B"))
        found.append((name, value(stream)))
    return found


def argument(stream: io.BytesIO, kind: str) -> Any:
    if kind == "S":
        return stream.read(number(stream, "B"))
    if kind == "L":
        return stream.read(number(stream, "I"))
    if kind == "T":
        return pairs(io.BytesIO(stream.read(number(stream, "I"))))
    return number(stream, {"o": "B", "s": "H", "l": "I", "q": "Q"}[kind])


def table(octets: bytes) -> list[tuple[bytes, Any]]:
    """The pairs of a table that has its length."""
    return list(argument(io.BytesIO(octets), "T"))


def method(payload: bytes) -> tuple[str, dict[str, Any]]:
    """The name of a method, and its arguments; strings are octets, tables are lists of pairs with letters."""
    stream = io.BytesIO(payload)
    name, _, arguments = METHODS[number(stream, "H"), number(stream, "H")]
    found: dict[str, Any] = {}
    bits, place = 0, 8
    for each, kind in arguments:
        if kind == "b":
            if place == 8:
                bits, place = number(stream, "B"), 0
            found[each] = bool(bits >> place & 1)
            place += 1
        else:
            found[each], place = argument(stream, kind), 8
    assert not stream.read()
    return name, found


def properties(octets: bytes) -> list[Any]:
    """The 14 properties, None for an absent one."""
    stream = io.BytesIO(octets)
    flags = number(stream, "H")
    return [argument(stream, kind) if flags >> 15 - n & 1 else None for n, kind in enumerate(PROPERTIES)]


def frames(octets: bytes) -> list[tuple[int, int, bytes]]:
    """Type, channel and payload of each frame."""
    stream = io.BytesIO(octets)
    found = []
    while stream.tell() < len(octets):
        kind, channel, size = struct.unpack(">BHI", stream.read(7))
        found.append((kind, channel, stream.read(size)))
        assert stream.read(1) == b"\xce"
    return found


# -- the writer: what the reader gives back -------------------------------------------------

NAMED = {name: (key, arguments) for key, (name, _, arguments) in METHODS.items()}
FORMS = {"o": "B", "s": "H", "l": "I", "q": "Q"}


def sized(form: str, octets: bytes) -> bytes:
    return struct.pack(">" + form, len(octets)) + octets


def text(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def written_value(letter: str, value: Any) -> bytes:
    head = letter.encode()
    if letter in NUMBERS:
        return head + struct.pack(">" + NUMBERS[letter], value)
    if letter == "D":
        return head + struct.pack(">Bi", *value)
    if letter in "Sx":
        return head + sized("I", text(value))
    if letter == "V":
        return head
    if letter == "F":
        return head + written_pairs(value)
    return head + sized("I", b"".join(written_value(*each) for each in value))


def written_pairs(found: list[tuple[Any, Any]]) -> bytes:
    """A table, with its length, of names and pairs of a letter and a value."""
    return sized("I", b"".join(sized("B", text(name)) + written_value(*each) for name, each in found))


def written_argument(kind: str, value: Any) -> bytes:
    if kind in "SL":
        return sized("B" if kind == "S" else "I", text(value))
    if kind == "T":
        return written_pairs(value)
    return struct.pack(">" + FORMS[kind], value)


def written_method(name: str, arguments: dict[str, Any]) -> bytes:
    """The payload of a method; what is not given is 0, empty or false."""
    key, kinds = NAMED[name]
    out = struct.pack(">HH", *key)
    bits = count = 0
    for each, kind in kinds:
        if kind == "b":
            bits |= bool(arguments.get(each)) << count
            count += 1
            continue
        if count:
            out, bits, count = out + bytes([bits]), 0, 0
        empty: Any = [] if kind == "T" else b"" if kind in "SL" else 0
        out += written_argument(kind, arguments.get(each, empty))
    return out + bytes([bits]) if count else out


def written_frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BH", kind, channel) + sized("I", payload) + b"\xce"


def say(name: str, channel: int = 1, **arguments: Any) -> bytes:
    """A method frame; of the class connection on channel 0."""
    on = 0 if name.startswith("connection.") else channel
    return written_frame(1, on, written_method(name, arguments))


def carry(
    name: str,
    body: bytes = b"",
    found: dict[int, Any] | None = None,
    channel: int = 1,
    most: int = 4088,
    **arguments: Any,
) -> bytes:
    """A method with a content, whose properties have their places as keys: 0 is content-type."""
    flags = sum(1 << 15 - place for place in found or {})
    values = b"".join(
        written_argument(PROPERTIES[place], value) for place, value in sorted((found or {}).items())
    )
    out = say(name, channel, **arguments)
    out += written_frame(2, channel, struct.pack(">HHQH", 60, 0, len(body), flags) + values)
    for at in range(0, len(body), most):
        out += written_frame(3, channel, body[at : at + most])
    return out
