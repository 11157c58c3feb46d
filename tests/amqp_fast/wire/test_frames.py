"""Frames have the shortest size."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast.wire.frames import frame, read_size


@pytest.mark.parametrize(
    ("size", "head"), [(0xFFFD, "fffe"), (0xFFFE, "ffff0000ffff"), (70000, "ffff00011171")]
)
def test_frame_has_the_shortest_size(size: int, head: str) -> None:
    octets = frame(b"x" * size)
    assert octets.startswith(bytes.fromhex(head))
    assert read_size(octets, 0, 1 << 20) == (len(head) // 2, size + 1)
    assert all(read_size(octets[:cut], 0, 1 << 20) is None for cut in range(len(head) // 2))
