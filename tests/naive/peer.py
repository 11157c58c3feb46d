"""A scripted peer over a trio stream: writes frames, and asserts what comes back, in order.

The same transcripts as ``script``, for what has a real stream: the pump, sessions and links of the adapter.
Empty frames are skipped unless one is expected, since they may come at any time (2.4.5).

``trio_amqp10.testing.ScriptedPeer`` does the same for users, and is not used in its place: it writes and reads with
the codec and the declarations of the library. What these have wrong, both ends would have wrong, and agree. This one shares
nothing with what it tests, and is a test of the public one too (``tests/testing/test_scripted_peer.py``).
"""

from __future__ import annotations

from typing import Any

import trio

from .performatives import Frame, frame, header
from .script import Expected, Inbox, describe, filled, header_expected

WINDOWS: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 2048, "outgoing_window": 2048}
"""What our sessions say of themselves when a test does not (2.5.6)."""


class ScriptedPeer:
    """One end of a stream, driven by a test.

    Args:
        stream: where the peer under test is at the other end.
        timeout: seconds of trio's clock until a wait becomes an AssertionError.
    """

    def __init__(self, stream: trio.abc.Stream, *, timeout: float = 30.0) -> None:
        self.stream = stream
        self.timeout = timeout
        self.inbox = Inbox()
        self.eof = False

    async def send(self, *octets: bytes) -> None:
        """Write these octets as one chunk."""
        data = b"".join(octets)
        sent = Inbox()
        try:
            sent.feed(data)
        except ValueError:
            self.inbox.note(f"-> {data.hex(' ')}")
        for got in sent.frames:
            self.inbox.note(f"-> {describe(got)}")
        await self.stream.send_all(data)

    async def expect(
        self, name: str, /, *, channel: int | None = None, payload: bytes | None = None, **fields: Any
    ) -> Frame:
        """The next frame, which must have this name, and these fields (None: absent); others may be anything."""
        return await self.take(Expected(name, channel, fields, payload))

    async def expect_header(self, name: str = "amqp") -> Frame:
        return await self.take(header_expected(name))

    async def expect_eof(self) -> None:
        """The peer writes nothing more, and ends its side of the stream."""
        await self._fill("eof", until_eof=True)
        self.inbox.check_idle()

    async def expect_nothing(self, seconds: float) -> None:
        """The peer writes no frame for so long on trio's clock."""
        with trio.move_on_after(seconds):
            await self._fill("nothing", until_eof=False, timeout=seconds + 1)
        self.inbox.check_idle()

    async def take(self, want: Expected) -> Frame:
        await self._fill(want.name, until_eof=False)
        return self.inbox.take(want)

    async def skip_to(self, name: str, /) -> Frame:
        """Pass over frames until one has this name, and return it."""
        while True:
            await self._fill(name, until_eof=False)
            if not self.inbox.frames or self.inbox.frames[0].name == name:
                return await self.expect(name)
            self.inbox.frames.popleft()

    async def _fill(self, wanted: str, *, until_eof: bool, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Read until there is a frame (or the stream's end)."""
        timeout = timeout or self.timeout
        with trio.move_on_after(timeout) as scope:
            while not self.eof and (until_eof or not self._ready(wanted)):
                data = await self.stream.receive_some(65_536)
                if data:
                    self.inbox.feed(bytes(data))
                else:
                    self.eof = True
            self._ready(wanted)
        if scope.cancelled_caught:
            heard = [describe(f) for f in self.inbox.frames]
            raise AssertionError(f"expected {wanted}, but after {timeout} s there is {heard or 'nothing'}")

    def _ready(self, wanted: str) -> bool:
        while self.inbox.frames and self.inbox.frames[0].name == "empty" and wanted != "empty":
            self.inbox.frames.popleft()
        return bool(self.inbox.frames)

    # --- the usual openings; each returns the frame that the peer under test sent ---

    async def accept_anonymous(self) -> Frame:
        """The SASL layer as a server that lets anyone in (5.3.2); returns sasl-init."""
        await self.expect_header("sasl")
        await self.send(header("sasl"), frame("sasl-mechanisms", sasl_server_mechanisms=["ANONYMOUS"]))
        init = await self.expect("sasl-init", mechanism="ANONYMOUS")
        await self.send(frame("sasl-outcome", code=0))
        return init

    async def accept_open(self, **fields: Any) -> Frame:
        """Header and open as the one who was dialled (2.4.1); returns the peer's open."""
        await self.expect_header("amqp")
        await self.send(header("amqp"))
        got = await self.expect("open")
        await self.send(filled("open", {"container_id": "peer"}, fields))
        return got

    async def dial_open(self, **fields: Any) -> Frame:
        """Header and open as the one who dials."""
        await self.send(header("amqp"), filled("open", {"container_id": "peer"}, fields))
        await self.expect_header("amqp")
        return await self.expect("open")

    async def accept_begin(self, **fields: Any) -> Frame:
        """Answer the peer's begin on the channel of the same number."""
        got = await self.expect("begin")
        await self.send(
            filled("begin", {"remote_channel": got.channel, **WINDOWS}, fields, channel=got.channel)
        )
        return got

    async def dial_begin(self, channel: int = 0, **fields: Any) -> Frame:
        await self.send(filled("begin", WINDOWS, fields, channel=channel))
        return await self.expect("begin", remote_channel=channel)

    async def accept_attach(self, *, credit: int = 0, **fields: Any) -> Frame:
        """Answer the peer's attach with its own handle, source and target; grant credit if it sends (2.6.3)."""
        got = await self.expect("attach")
        answer: dict[str, Any] = {k: got[k] for k in ("name", "handle", "source", "target")}
        answer["role"] = not got["role"]
        if got["role"]:
            answer["initial_delivery_count"] = 0
        await self.send(filled("attach", answer, fields, channel=got.channel))
        if credit and not got["role"]:
            await self.send(
                filled(
                    "flow",
                    WINDOWS,
                    {
                        "next_incoming_id": 0,
                        "handle": got["handle"],
                        "delivery_count": got["initial_delivery_count"] or 0,
                        "link_credit": credit,
                    },
                    channel=got.channel,
                )
            )
        return got

    async def accept_close(self, **fields: Any) -> Frame:
        """Answer the peer's close, and see the stream end."""
        got = await self.skip_to("close")
        await self.send(frame("close", **fields))
        return got

    async def aclose(self) -> None:
        await self.stream.aclose()
