"""A second reader of AMQP/Fast, made from the grammar of the document and nothing else; it knows no rule."""

from __future__ import annotations

from typing import Any

# o octet, s short, l long, b bit, S short string, L long string, T table
COMMANDS = {
    10: "oST",
    11: "ST",
    12: "TT",
    13: "sSST",
    14: "b",
    18: "ssS",
    19: "sS",
    20: "ssbbTS",
    21: "ssl",
    22: "ssT",
    23: "ssT",
    28: "sssS",
    29: "ssS",
    30: "ssssbbbbSSST",
    31: "sslbbbbS",
    32: "sssbbSSLS",
    33: "ssSS",
    34: "ssb",
    35: "ssl",
    36: "slSLS",
    37: "ssl",
    40: "sS",
    41: "sllbbbbbbS",
    42: "slL",
    43: "slS",
    44: "sl",
    48: "sssS",
    49: "ssS",
}
HEAD = "lbolSSST"
FRAGMENTS = {31: (2, 4), 41: (2, 4), 43: (1, None)}
"""Where a command says how large its fragment is, and whether that goes another way."""


def table(octets: bytes) -> list[tuple[str, str, Any]]:
    found, at = [], 0
    while at < len(octets):
        size = octets[at]
        name = octets[at + 1 : at + 1 + size].decode()
        at += 1 + size
        letter = chr(octets[at])
        width = {"S": 2 + int.from_bytes(octets[at + 1 : at + 3], "big"), "I": 4, "D": 5, "T": 4}[letter]
        value = octets[at + 1 : at + 1 + width]
        found.append((name, letter, value[2:] if letter == "S" else value))
        at += 1 + width
    return found


def fields(form: str, octets: bytes) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = bits = 0
    for letter in form:
        if letter != "b":
            bits = 0
        if letter == "b":
            if not bits:
                at += 1
            found.append(bool(octets[at - 1] >> bits & 1))
            bits += 1
        elif letter in "osl":
            width = {"o": 1, "s": 2, "l": 4}[letter]
            found.append(int.from_bytes(octets[at : at + width], "big"))
            at += width
        else:
            width = 1 if letter == "S" else 2
            size = int.from_bytes(octets[at : at + width], "big")
            value = octets[at + width : at + width + size]
            at += width + size
            found.append(value.decode() if letter == "S" else table(value) if letter == "T" else value)
    return found, at


def read(octets: bytes) -> list[tuple[int, list[Any], bytes]]:
    """Number, fields and fragment of each command."""
    found, at = [], 0
    while at < len(octets):
        size = int.from_bytes(octets[at : at + 2], "big")
        at += 2
        if size == 0xFFFF:
            size = int.from_bytes(octets[at : at + 4], "big")
            at += 4
        payload, end = octets[at : at + size - 1], octets[at + size - 1]
        assert end == 0xCE
        at += size
        values, used = fields(COMMANDS[payload[0]], payload[1:])
        assert used == len(payload) - 1
        fragment = b""
        if payload[0] in FRAGMENTS:
            place, elsewhere = FRAGMENTS[payload[0]]
            if elsewhere is None or not values[elsewhere]:
                fragment = octets[at : at + values[place]]
                assert len(fragment) == values[place]
                at += values[place]
        found.append((payload[0], values, fragment))
    return found
