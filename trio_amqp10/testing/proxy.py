"""A simulated network at a port: dial the proxy, and it dials the peer.

Passes TLS on as it is. Knows sockets; what the network does to octets is in ``network_line``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import trio

from trio_amqp10.net.urls import Url, parse_url

from .network import Network, network_around
from .network_line import Ending, Line
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from .record_replay import Recorder

__all__ = ["Proxy", "open_proxy", "running_proxy"]


class Proxy:
    """A port that leads to a peer through a network.

    Attributes:
        url: what to dial, in the way of the target's: its scheme and its credentials.
        networks: one for each connection so far, in the order in which they came.
    """

    def __init__(
        self,
        port: int,
        target: Url,
        lines: tuple[Sequence[Line], Sequence[Line]],
        seed: int,
        recorder: Recorder | None,
    ) -> None:
        self.url: Final = _through(port, target)
        self.networks: list[Network] = []
        self._target = target
        self._lines = lines
        self._seed = seed
        self._recorder = recorder

    def cut(self, how: Ending = "reset") -> None:
        """Break every connection that there is now."""
        for network in self.networks:
            network.cut(how)

    async def carry(self, near: trio.abc.Stream) -> None:
        """One connection, from its beginning to its end. Cancelled: it is closed at both ends."""
        async with near:
            try:
                far = await _dialled(self._target)
            except OSError:
                return  # nobody answers there: whoever has dialled us is told by the end of the stream
            there, back = (of_way[min(len(self.networks), len(of_way) - 1)] for of_way in self._lines)
            if self._recorder is not None:
                far = self._recorder.record(far)
            network = network_around(near, far, (there, back), self._seed + len(self.networks))
            self.networks.append(network)
            await network.run()


@asynccontextmanager
async def open_proxy(
    target: str,
    *,
    there: Line | Sequence[Line] | None = None,
    back: Line | Sequence[Line] | None = None,
    seed: int = 0,
    recorder: Recorder | None = None,
) -> AsyncGenerator[Proxy]:
    """A port that leads to ``target`` through a network: ``async with open_proxy(url) as proxy``.

    Over sockets a reader may get several pieces at once, and time is the machine's.

    Args:
        target: the URL of the peer.
        there: what happens to octets on their way to the peer; several: one for each connection, the
            last one for all that follow.
        back: the same, for those that come back.
        seed: of sizes and jitter of the first connection; the next has the next.
        recorder: where to keep the conversations, as the peer sees them.

    Raises:
        LocalProtocolError: ``target`` is no URL.

    Cancelled: all connections are closed.
    """
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listener.socket.getsockname()[1]
    proxy = Proxy(port, parse_url(target), (_each(there), _each(back)), seed, recorder)
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.carry, [listener])
        try:
            yield proxy
        except Exception as failure:
            raised = failure
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


@contextmanager
def running_proxy(
    target: str,
    *,
    there: Line | Sequence[Line] | None = None,
    back: Line | Sequence[Line] | None = None,
    seed: int = 0,
    recorder: Recorder | None = None,
) -> Generator[str]:
    """The same in a thread of its own, for code that is not trio: ``with running_proxy(url) as proxy_url``.

    Args:
        target: the URL of the peer.
        there: as for ``open_proxy``.
        back: as for ``open_proxy``.
        seed: as for ``open_proxy``.
        recorder: as for ``open_proxy``.

    Raises:
        LocalProtocolError: ``target`` is no URL.
    """
    with in_thread(
        open_proxy(target, there=there, back=back, seed=seed, recorder=recorder), "amqp10 proxy"
    ) as proxy:
        yield proxy.url


async def _dialled(target: Url) -> trio.abc.Stream:
    if target.scheme == "amqp+unix":
        return await trio.open_unix_socket(target.path)
    return await trio.open_tcp_stream(target.host, target.port)


def _through(port: int, target: Url) -> str:
    scheme = target.scheme.replace("+unix", "")
    secret = "" if target.password is None else f":{quote(target.password, safe='')}"
    user = "" if target.username is None else f"{quote(target.username, safe='')}{secret}@"
    return f"{scheme}://{user}127.0.0.1:{port}"


def _each(lines: Line | Sequence[Line] | None) -> Sequence[Line]:
    if isinstance(lines, Sequence):
        return lines or (Line(),)
    return (lines or Line(),)
