"""Frames for people to read: a stream that shows what passes through it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trio_amqp10.peer.taps import tapped
from trio_amqp10.trace.pieces import FrameSplitter
from trio_amqp10.trace.text import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from trio_amqp10.peer.taps import TappedStream

__all__ = ["shown"]


def shown(stream: trio.abc.Stream, show: Callable[[str], object]) -> TappedStream:
    """``stream``, with ``show`` told a line for each header and frame that passes: ``->`` or ``<-`` and what it is."""

    def tell(arrow: str, splitter: FrameSplitter, octets: bytes) -> None:
        for piece in splitter.feed(octets):
            show(f"{arrow} {describe(piece)}")

    return tapped(stream, partial(tell, "->", FrameSplitter()), partial(tell, "<-", FrameSplitter()))
