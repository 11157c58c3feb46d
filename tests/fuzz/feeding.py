"""Octets for an engine of the older wires: read in pieces, answered, and all that it counts gone in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def feed(
    engine: Any,
    octets: bytes,
    *,
    settle: Callable[[Any, bytearray], None],
    check: Callable[[bytes], None],
    spare: int,
) -> None:
    """Read octets in pieces whose size follows from how many there are, and end the transport.

    Args:
        engine: of either role.
        octets: what the peer sends.
        settle: answers what came, and adds what is written to the output; called after each piece.
        check: judges all that was written, also where the octets were refused.
        spare: octets that may be written about nothing.
    """
    size = (1 << 20, 1, 7, 64)[len(octets) % 4]
    output = bytearray()
    try:
        for at in range(0, len(octets), size):
            engine.receive_slice(octets[at : at + size], 1.0)
            settle(engine, output)
            while engine.has_input():
                engine.receive_slice(b"", 1.0)
                settle(engine, output)
        engine.receive_eof(2.0)
    finally:
        settle(engine, output)
        for now in (3.0, 40.0, 300.0):
            engine.handle_timer(now)
            settle(engine, output)
        engine.transport_lost()
        settle(engine, output)
        assert engine.data_to_send() is None
        assert engine.next_deadline() is None
        assert engine.partial == engine.held == 0, "something is still counted"
        assert len(output) <= 16 * len(octets) + spare, f"{len(output)} written about {len(octets)}"
        check(bytes(output))
