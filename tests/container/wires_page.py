"""The frames of one message on every wire, as the manual shows them.

``python -m tests.container.wires_page`` writes them into ``docs/reference/every_amqp.rst``. A client of each wire sends the
message to a container over TCP, through a relay that records both directions.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import trio

import trio_amqp10 as amqp
from tests.places import ROOT
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter
from trio_amqp10.tools.trace.frame_text import describe, hexdump

from .clients import CLIENTS, Fields

PAGE: Final = ROOT / "docs/reference/every_amqp.rst"
MESSAGE: Final = Fields(body=b"tea", durable=True, headers={"colour": "green"})
WIRES: Final = {
    "amqp-fast": "AMQP/Fast, 2005",
    "10.3": "10.3, 2006",
    "0-9-1": "0-9-1, 2008",
    "1.0-draft-2010": "The draft of 1.0, 2010",
    "1.0": "AMQP 1.0",
}
"""The titles, by the names of ``CLIENTS``, the oldest first."""
_BEGIN: Final = (
    ".. The frames are made by ``python -m tests.container.wires_page``: change the code, not these.\n"
)
_END: Final = ".. End of the frames.\n"
_OF_CONNECTIONS: Final = re.compile(
    r"empty frame|heartbeat|Sasl|connection |\[0\] (Open|Close|connection\.)|header AMQP 3 "
)
"""Frames of the connection, which are not shown: they name versions of this library."""
_CARRIES: Final = re.compile(r"(\[\d+\] )?(Transfer|basic\.publish|header\(|body |handle send)")
_HEAD: Final = """.. list-table::
   :header-rows: 1

   * -
     - frames that carry it
     - octets of these
"""
_UUID: Final = re.compile(r"'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'")
Frame = tuple[str, bytes]
"""A frame, or a protocol header, as text and as octets."""
Recording = tuple[list[Frame], list[Frame]]
"""The frames of the client, and the frames of the container."""


async def record(wire: str) -> Recording:
    """Send the message by this wire to a container, and record it."""
    container = amqp.Container("hub")
    container.add_queue("q")
    said, heard = bytearray(), bytearray()
    dialects = [wire] if wire == "1.0-draft-2010" else "all"
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects)
            (listener,) = await nursery.start(serve)

            async def relay(stream: trio.SocketStream) -> None:
                async with (
                    await trio.open_tcp_stream("127.0.0.1", listener.port) as there,
                    trio.open_nursery() as both,
                ):
                    both.start_soon(_pass_on, stream, there, said)
                    both.start_soon(_pass_on, there, stream, heard)

            (entrance,) = await nursery.start(partial(trio.serve_tcp, relay, 0, host="127.0.0.1"))
            await CLIENTS[wire].send(entrance.socket.getsockname()[1], "q", MESSAGE)
            nursery.cancel_scope.cancel()
    return _split(bytes(said)), _split(bytes(heard))


async def _pass_on(source: trio.SocketStream, target: trio.SocketStream, recorded: bytearray) -> None:
    try:
        async for data in source:
            recorded += data
            await target.send_all(data)
        await target.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # one end has gone; what it wrote is recorded


def _split(octets: bytes) -> list[Frame]:
    splitter = FrameSplitter()
    pieces = splitter.feed(octets)
    assert not splitter.rest
    return [(describe(piece), piece.octets) for piece in pieces]


def shown(recording: Recording) -> str:
    """Return the frames as a block of text, with the octets that carry the message."""
    said, heard = (_kept(frames) for frames in recording)
    lines = [f"-> {text}" for text, _ in said] + [f"<- {text}" for text, _ in heard]
    carried = b"".join(_carried(said))
    lines += ["", f"the message, {len(carried)} octets with its frames:", *hexdump(carried)]
    return "".join(f"   {line}".rstrip() + "\n" for line in lines)


def _carried(said: list[Frame]) -> list[bytes]:
    return [octets for text, octets in said if _CARRIES.match(text)]


def _kept(frames: list[Frame]) -> list[Frame]:
    return [(_UUID.sub("<uuid>", text), octets) for text, octets in frames if not _OF_CONNECTIONS.match(text)]


def page_with(recordings: dict[str, Recording]) -> str:
    """The page with these frames in place of those that it has."""
    sizes = "".join(
        f"   * - {WIRES[wire]}\n     - {len(carried)}\n     - {len(b''.join(carried))}\n"
        for wire, carried in ((wire, _carried(said)) for wire, (said, _) in recordings.items())
    )
    parts = [
        f"{WIRES[wire]}\n{'~' * len(WIRES[wire])}\n\n.. code-block:: text\n\n{shown(recording)}\n"
        for wire, recording in recordings.items()
    ]
    text = PAGE.read_text()
    assert text.count(_BEGIN) == text.count(_END) == 1
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return f"{before}{_BEGIN}\n{_HEAD}{sizes}\n{''.join(parts)}{_END}{after}"


async def _recordings() -> dict[str, Recording]:
    return {wire: await record(wire) for wire in WIRES}


if __name__ == "__main__":
    PAGE.write_text(page_with(trio.run(_recordings)))
