"""The messages that every interop run exchanges, from a seed alone, and the digest that proves them.

``rhea_peer.js`` does the same arithmetic: two ends agree on a digest only if each saw every message, whole
and in order. Standard library only, since proton's programs import it too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHABET = "abcdefghij 0123456789\u00e9\u00df\u0416\u2603\u20ac\U0001d11e\n\t'\""
"""Characters of one, two, three and four octets of UTF-8."""

BIG = 150_000
"""Octets and more of every 97th body: larger than the frames of every peer here."""

SMALL = 0
"""The seed of the corpus in which every message fits a frame of 16 KiB."""


WORDS = (
    "the of and to in a is that queue message link session credit window frame broker sender receiver"
    " settled transfer \u00fcber na\u00efve \u0447\u0435\u0440\u0435\u0437 \u6d88\u606f caf\u00e9"
    """ \"quoted\" 'single' a\\b {"k":1} <tag/> #! $HOME %s \U0001d11e"""
)


class Item(NamedTuple):
    """One message: ``body`` is str, bytes or dict."""

    message_id: str
    properties: dict[str, Any]
    body: Any


class Random:
    """Marsaglia's xorshift of 32 bits: the same few lines in any language."""

    def __init__(self, seed: int, index: int) -> None:
        self.state = (seed * 2654435761 + index * 40503 + 1) % 2**32 or 1

    def below(self, limit: int) -> int:
        x = self.state
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        self.state = x
        return x % limit


def body_kind(index: int) -> str:
    return ("string", "binary", "map")[index % 3]


def item(seed: int, index: int) -> Item:
    random = Random(seed, index)
    if index % 97 == 5 and seed != SMALL:
        size = BIG + random.below(50_000)
    elif index % 10 == 3:
        size = random.below(5_000)
    else:
        size = random.below(200)
    units = size // 16
    text = "".join(ALPHABET[random.below(len(ALPHABET))] for _ in range(16)) * units + f"#{index}"
    raw = bytes(random.below(256) for _ in range(16)) * units + index.to_bytes(4, "big")
    properties = {"index": index, "name": f"n-{random.below(1_000_000)}", "even": index % 2 == 0}
    body: Any = {"string": text, "binary": raw}.get(body_kind(index))
    if body is None:
        body = {
            "index": index,
            "text": text,
            "raw": raw,
            "half": index + 0.5,
            "negative": -1 - index,
            "big": 2**40 + index,
            "flag": index % 2 == 1,
            "none": None,
            "items": [1, "two", False, None],
            "nested": {"deep": f"d-{index}"},
        }
    return Item(f"{seed}-{index}", properties, body)


def corpus(seed: int, count: int) -> Iterator[Item]:
    return (item(seed, index) for index in range(count))


class Digest:
    """SHA-256 over what arrived, in the order in which it did."""

    def __init__(self) -> None:
        self.count = 0
        self._sha = hashlib.sha256()

    def add(self, message_id: Any, properties: Any, body: Any) -> None:
        self.count += 1
        for part in (message_id, properties, body):
            self._sha.update(canonical(part))
        self._sha.update(b"\n")

    def hexdigest(self) -> str:
        return self._sha.hexdigest()


def corpus_digest(seed: int, count: int) -> str:
    """What a peer must report that received these messages."""
    digest = Digest()
    for one in corpus(seed, count):
        digest.add(*one)
    return digest.hexdigest()


def canonical(value: Any) -> bytes:
    """A value as octets, whatever language or integer width it went through; map keys are sorted."""
    several: Any = value  # stays Any where isinstance would make it partly unknown
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float) and not value.is_integer():
        return b"d%s;" % repr(float(value)).encode()
    if isinstance(value, (int, float)):
        return b"i%d;" % int(value)
    if isinstance(value, str):
        octets = value.encode()
        return b"s%d:%s" % (len(octets), octets)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b"b%d:%s" % (len(octets := bytes(several)), octets)
    if isinstance(value, dict):
        pairs = sorted((canonical(k), canonical(v)) for k, v in several.items())
        return b"{%s}" % b"".join(k + v for k, v in pairs)
    if isinstance(value, (list, tuple)):
        return b"[%s]" % b"".join(canonical(v) for v in several)
    raise TypeError(f"no canonical form of {type(value).__name__}")


def text_lines(count: int, seed: int = 1) -> list[str]:
    """Lines as people write them: all different, indented, quoted, accented, some long, one of them empty."""
    words = WORDS.split(" ")
    lines = [""]
    for number in range(1, count):
        random = Random(seed, number)
        length = 400 if number % 500 == 0 else random.below(18) + 1
        line = " ".join(words[random.below(len(words))] for _ in range(length))
        indent = ("", "", "  ", "\t")[random.below(4)]
        trailer = ("", "", " ", "\t")[random.below(4)]
        lines.append(f"{indent}{number} {line}{trailer}")
    return lines
