"""The composites of parts 2 to 5 as one table, frames out of them, and frames read back as plain Python.

``frame("attach", name="x", handle=0, role=True, source=("source", {"address": "q"}))`` gives octets,
``parse_frames(octets)`` gives ``Frame`` objects back. Field names are the standard's with ``_``; a field
left out is null, and no default of the standard is ever filled in. Checks no rule of the protocol: a test
may write any nonsense that has octets, by passing ``Typed`` values where a plain one would be too polite.

Sections: 2.3 (frames), 2.7 (performatives), 2.8.14 (error), 3.2 (message sections), 3.4 (delivery states),
3.5 (termini), 4.5 (transactions), 5.3.3 (SASL).
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .codec import NaiveError, Typed, array, decode, decode_all, described, encode, mapping


class Composite(NamedTuple):
    code: int
    symbol: str
    fields: list[tuple[str, str, bool]]  # name with ``_``, type, multiple


def _row(code: int, symbol: str, fields: str = "") -> Composite:
    split = [f.partition(":") for f in fields.split()]
    return Composite(
        code, symbol, [(n.replace("-", "_"), t.rstrip("*"), t.endswith("*")) for n, _, t in split]
    )


# ``*`` after a type: multiple (1.4). ``any``: the value's own type tells.
COMPOSITES: dict[str, Composite] = {
    # 2.7: the performatives
    "open": _row(
        0x10,
        "amqp:open:list",
        "container-id:string hostname:string max-frame-size:uint channel-max:ushort idle-time-out:uint"
        " outgoing-locales:symbol* incoming-locales:symbol* offered-capabilities:symbol*"
        " desired-capabilities:symbol* properties:fields",
    ),
    "begin": _row(
        0x11,
        "amqp:begin:list",
        "remote-channel:ushort next-outgoing-id:uint incoming-window:uint outgoing-window:uint handle-max:uint"
        " offered-capabilities:symbol* desired-capabilities:symbol* properties:fields",
    ),
    "attach": _row(
        0x12,
        "amqp:attach:list",
        "name:string handle:uint role:boolean snd-settle-mode:ubyte rcv-settle-mode:ubyte source:any target:any"
        " unsettled:map incomplete-unsettled:boolean initial-delivery-count:uint max-message-size:ulong"
        " offered-capabilities:symbol* desired-capabilities:symbol* properties:fields",
    ),
    "flow": _row(
        0x13,
        "amqp:flow:list",
        "next-incoming-id:uint incoming-window:uint next-outgoing-id:uint outgoing-window:uint handle:uint"
        " delivery-count:uint link-credit:uint available:uint drain:boolean echo:boolean properties:fields",
    ),
    "transfer": _row(
        0x14,
        "amqp:transfer:list",
        "handle:uint delivery-id:uint delivery-tag:binary message-format:uint settled:boolean more:boolean"
        " rcv-settle-mode:ubyte state:any resume:boolean aborted:boolean batchable:boolean",
    ),
    "disposition": _row(
        0x15,
        "amqp:disposition:list",
        "role:boolean first:uint last:uint settled:boolean state:any batchable:boolean",
    ),
    "detach": _row(0x16, "amqp:detach:list", "handle:uint closed:boolean error:any"),
    "end": _row(0x17, "amqp:end:list", "error:any"),
    "close": _row(0x18, "amqp:close:list", "error:any"),
    # 2.8.14
    "error": _row(0x1D, "amqp:error:list", "condition:symbol description:string info:fields"),
    # 3.4: delivery states
    "received": _row(0x23, "amqp:received:list", "section-number:uint section-offset:ulong"),
    "accepted": _row(0x24, "amqp:accepted:list"),
    "rejected": _row(0x25, "amqp:rejected:list", "error:any"),
    "released": _row(0x26, "amqp:released:list"),
    "modified": _row(
        0x27,
        "amqp:modified:list",
        "delivery-failed:boolean undeliverable-here:boolean message-annotations:fields",
    ),
    # 3.5: sources and targets
    "source": _row(
        0x28,
        "amqp:source:list",
        "address:any durable:uint expiry-policy:symbol timeout:uint dynamic:boolean dynamic-node-properties:fields"
        " distribution-mode:symbol filter:fields default-outcome:any outcomes:symbol* capabilities:symbol*",
    ),
    "target": _row(
        0x29,
        "amqp:target:list",
        "address:any durable:uint expiry-policy:symbol timeout:uint dynamic:boolean dynamic-node-properties:fields"
        " capabilities:symbol*",
    ),
    "delete-on-close": _row(0x2B, "amqp:delete-on-close:list"),
    "delete-on-no-links": _row(0x2C, "amqp:delete-on-no-links:list"),
    "delete-on-no-messages": _row(0x2D, "amqp:delete-on-no-messages:list"),
    "delete-on-no-links-or-messages": _row(0x2E, "amqp:delete-on-no-links-or-messages:list"),
    # 4.5: transactions
    "coordinator": _row(0x30, "amqp:coordinator:list", "capabilities:symbol*"),
    "declare": _row(0x31, "amqp:declare:list", "global-id:any"),
    "discharge": _row(0x32, "amqp:discharge:list", "txn-id:any fail:boolean"),
    "declared": _row(0x33, "amqp:declared:list", "txn-id:any"),
    "transactional-state": _row(0x34, "amqp:transactional-state:list", "txn-id:any outcome:any"),
    # 5.3.3: SASL
    "sasl-mechanisms": _row(0x40, "amqp:sasl-mechanisms:list", "sasl-server-mechanisms:symbol*"),
    "sasl-init": _row(
        0x41, "amqp:sasl-init:list", "mechanism:symbol initial-response:binary hostname:string"
    ),
    "sasl-challenge": _row(0x42, "amqp:sasl-challenge:list", "challenge:binary"),
    "sasl-response": _row(0x43, "amqp:sasl-response:list", "response:binary"),
    "sasl-outcome": _row(0x44, "amqp:sasl-outcome:list", "code:ubyte additional-data:binary"),
    # 3.2: the two sections that are lists of fields
    "header": _row(
        0x70,
        "amqp:header:list",
        "durable:boolean priority:ubyte ttl:uint first-acquirer:boolean delivery-count:uint",
    ),
    "properties": _row(
        0x73,
        "amqp:properties:list",
        "message-id:id user-id:binary to:any subject:string reply-to:any correlation-id:id content-type:symbol"
        " content-encoding:symbol absolute-expiry-time:timestamp creation-time:timestamp group-id:string"
        " group-sequence:uint reply-to-group-id:string",
    ),
}

# 3.2: the sections that are one value behind a descriptor.
SECTIONS: dict[str, tuple[int, str, str]] = {
    "delivery-annotations": (0x71, "amqp:delivery-annotations:map", "fields"),
    "message-annotations": (0x72, "amqp:message-annotations:map", "fields"),
    "application-properties": (0x74, "amqp:application-properties:map", "map"),
    "data": (0x75, "amqp:data:binary", "binary"),
    "amqp-sequence": (0x76, "amqp:amqp-sequence:list", "list"),
    "amqp-value": (0x77, "amqp:amqp-value:*", "any"),
    "footer": (0x78, "amqp:footer:map", "fields"),
}

_NAMES: dict[int | str, str] = {}
for _name, (_code, _symbol, _) in [*COMPOSITES.items(), *SECTIONS.items()]:
    _NAMES[_code] = _NAMES[_symbol] = _name

HEADER_IDS = {"amqp": 0, "tls": 2, "sasl": 3}

# --- plain Python -> Typed ---


def typed(kind: str, value: Any) -> Typed:
    """A plain value as the type that a field asks for; ``Typed`` and None pass as they are."""
    if value is None:
        return Typed("null")
    if isinstance(value, Typed):
        return value
    if kind == "id":
        return Typed("ulong", value) if isinstance(value, int) else guess(value)
    if kind == "fields":
        return mapping(*((_symbol_key(k), guess(v)) for k, v in value.items()))
    if kind in ("any", "map", "list"):
        return guess(value)
    return Typed(kind, value)


def guess(value: Any) -> Typed:
    """The type that a plain value has when nothing else says so; a pair is a described one, by name or descriptor."""
    if value is None or isinstance(value, Typed):
        return value or Typed("null")
    pair: Any = value  # stays Any below: its parts are whatever the test wrote
    if isinstance(value, tuple):
        name, inner = pair
        if name in COMPOSITES:
            return composite(name, inner)
        return described(Typed("ulong" if isinstance(name, int) else "symbol", name), guess(inner))
    if isinstance(value, dict):
        return mapping(*((guess(k), guess(v)) for k, v in pair.items()))
    if isinstance(value, list):
        return Typed("list", tuple(guess(v) for v in pair))
    types = {bool: "boolean", int: "long", str: "string", bytes: "binary", float: "double", uuid.UUID: "uuid"}
    return Typed(types[type(value)], value)


def _symbol_key(key: Any) -> Typed:
    return Typed("symbol", key) if isinstance(key, str) else guess(key)


def composite(
    name: str,
    fields: dict[str, Any],
    *,
    symbolic: bool = False,
    list_code: int | None = None,
    pad: bool = False,
) -> Typed:
    """A composite as a described list; trailing nulls are left out unless ``pad`` (1.4)."""
    row = COMPOSITES[name]
    if unknown := set(fields) - {f for f, _, _ in row.fields}:
        raise NaiveError(f"{name} has no field {', '.join(sorted(unknown))}")
    items = [_field(kind, multiple, fields.get(f)) for f, kind, multiple in row.fields]
    while items and items[-1] == Typed("null") and not pad:
        items.pop()
    descriptor = Typed("symbol", row.symbol) if symbolic else Typed("ulong", row.code)
    return described(descriptor, Typed("list", tuple(items), list_code))


def _field(kind: str, multiple: bool, value: Any) -> Typed:
    several: Any = value
    if multiple and isinstance(value, list):
        return array(0xA3, *(typed(kind, v) for v in several))
    return typed(kind, value)


# --- Typed -> plain Python ---


def plain(value: Typed) -> Any:
    """The value without its types: composites as ``(name, {field: value})`` with the nulls left out."""
    v = value.value
    if value.type == "described":
        return _plain_described(*v)
    if value.type == "list":
        return [plain(item) for item in v]
    if value.type == "array":
        if v.descriptor is None:
            return [plain(item) for item in v.items]
        return [_plain_described(v.descriptor, item) for item in v.items]
    if value.type == "map":
        return {plain(k): plain(item) for k, item in v}
    return v


def _plain_described(descriptor: Typed, inner: Typed) -> tuple[Any, Any]:
    name = _NAMES.get(descriptor.value) if descriptor.type in ("ulong", "symbol") else None
    if name is None or name not in COMPOSITES:
        return (name or plain(descriptor), plain(inner))
    if inner.type != "list":
        raise NaiveError(f"{name} is a list, not a {inner.type}")
    row = COMPOSITES[name].fields
    if len(inner.value) > len(row):
        raise NaiveError(f"{name} has {len(row)} fields, got {len(inner.value)}")
    fields: dict[str, Any] = {}
    for (field_name, kind, multiple), item in zip(row, inner.value, strict=False):
        if item.type == "null":
            continue
        _check_type(f"{name}.{field_name}", kind, multiple, item)
        got = plain(item)
        fields[field_name] = [got] if multiple and item.type != "array" else got
    return (name, fields)


def _check_type(where: str, kind: str, multiple: bool, item: Typed) -> None:
    expected = {"fields": "map", "any": item.type, "id": item.type}.get(kind, kind)
    if item.type == "array" and multiple:
        kinds = {element.type for element in item.value.items}
        if kinds <= {expected}:
            return
    elif item.type == expected:
        return
    raise NaiveError(f"{where} is {kind}, not {item}")


# --- frames ---


@dataclass(frozen=True)
class Frame:
    """One frame, or one protocol header (name ``protocol-header``, type -1, field ``id``).

    ``fields`` holds what was not null; ``frame["x"]`` is None for what was. An empty frame is named ``empty``.
    ``body`` keeps the performative's own types, ``raw`` the octets of the whole frame.
    """

    type: int
    channel: int
    name: str
    fields: dict[str, Any]
    payload: bytes = b""
    body: Typed | None = field(default=None, repr=False, compare=False)
    raw: bytes = field(default=b"", repr=False, compare=False)

    def __getitem__(self, name: str) -> Any:
        if self.name in COMPOSITES and name not in {f for f, _, _ in COMPOSITES[self.name].fields}:
            raise KeyError(f"{self.name} has no field {name}")
        return self.fields.get(name)


def raw_frame(
    body: bytes, *, channel: int = 0, frame_type: int = 0, doff: int = 2, size: int | None = None
) -> bytes:
    """Eight octets of frame header, an extended header of zeros where ``doff`` asks for one, the body (2.3.1)."""
    extended = bytes(max(0, 4 * doff - 8))
    size = 8 + len(extended) + len(body) if size is None else size
    return struct.pack(">IBBH", size, doff, frame_type, channel) + extended + body


def empty_frame(channel: int = 0) -> bytes:
    return raw_frame(b"", channel=channel)


def frame(
    performative: str,
    /,
    *,
    channel: int = 0,
    payload: bytes = b"",
    symbolic: bool = False,
    list_code: int | None = None,
    pad: bool = False,
    doff: int = 2,
    **fields: Any,
) -> bytes:
    """The octets of a frame with this performative; its frame type follows from the name."""
    body = composite(performative, fields, symbolic=symbolic, list_code=list_code, pad=pad)
    frame_type = 1 if performative.startswith("sasl-") else 0
    return raw_frame(encode(body) + payload, channel=channel, frame_type=frame_type, doff=doff)


def header(name: str = "amqp", *, version: tuple[int, int, int] = (1, 0, 0)) -> bytes:
    """A protocol header: ``amqp``, ``tls`` or ``sasl`` (2.2)."""
    return b"AMQP" + bytes([HEADER_IDS[name], *version])


def next_frame(buf: bytes) -> tuple[Frame, bytes] | None:
    """The first frame or protocol header of ``buf`` and the octets after it; None while octets are missing."""
    if buf[:4] == b"AMQP":
        if len(buf) < 8:
            return None
        protocol_id, *version = buf[4:8]
        fields = {"id": protocol_id, "version": tuple(version)}
        return Frame(-1, 0, "protocol-header", fields, raw=buf[:8]), buf[8:]
    if len(buf) < 8:
        return None
    size, doff, frame_type, channel = struct.unpack_from(">IBBH", buf)
    if size < 8 or doff < 2 or 4 * doff > size or frame_type > 1:
        raise NaiveError(f"not a frame: {buf[:8].hex(' ')}")
    if len(buf) < size:
        return None
    raw, body = buf[:size], buf[4 * doff : size]
    if not body:
        return Frame(frame_type, channel, "empty", {}, raw=raw), buf[size:]
    performative, payload = decode(body)
    if performative.type != "described":
        raise NaiveError(f"a frame body begins with a performative, not with {performative}")
    name, fields = plain(performative)
    return Frame(frame_type, channel, name, fields, payload, performative, raw), buf[size:]


def parse_frames(buf: bytes) -> list[Frame]:
    """Every frame and protocol header of ``buf``, which must end where the last one does."""
    frames: list[Frame] = []
    while (found := next_frame(buf)) is not None:
        got, buf = found
        frames.append(got)
    if buf:
        raise NaiveError(f"{len(buf)} octets of an unfinished frame")
    return frames


# --- the bare message and what goes around it (3.2) ---


def sections(*named: tuple[str, Any]) -> bytes:
    """A payload: ``sections(("properties", {"to": "q"}), ("data", b"x"), ("amqp-value", 1))``."""
    octets = b""
    for name, value in named:
        if name in COMPOSITES:
            octets += encode(composite(name, value))
            continue
        code, _, kind = SECTIONS[name]
        octets += encode(described(Typed("ulong", code), typed(kind, value)))
    return octets


def parse_sections(payload: bytes) -> list[tuple[str, Any]]:
    """The sections of a payload in their order, as ``(name, plain value)``."""
    return [plain(section) for section in decode_all(payload)]
