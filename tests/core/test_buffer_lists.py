"""Lists of buffers: in one piece, and what is left of them after a partial write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.buffer_lists import joined, unsent

SIZES = st.lists(st.integers(0, 40), max_size=12)


def test_octets_in_one_piece() -> None:
    assert joined(None) is None
    assert joined([]) == b""
    assert joined([b"ab", memoryview(b"cd")]) == b"abcd"


@given(SIZES, st.data())
def test_any_partial_writes_write_the_same_octets(sizes: list[int], data: st.DataObject) -> None:
    octets = bytes(range(256)) * 2
    buffers: list[bytes | memoryview] = []
    start = 0
    for size in sizes:
        piece = octets[start : start + size]
        buffers.append(piece if data.draw(st.booleans()) else memoryview(piece))
        start += size
    whole = b"".join(buffers)
    written = b""
    while rest := b"".join(buffers):
        sent = data.draw(st.integers(0, len(rest)))
        written += rest[:sent]
        buffers = unsent(buffers, sent)
    assert written == whole
    assert unsent([b"a", b"b"], 2) == []
