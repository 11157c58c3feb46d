"""A simulated network at a port: clients dial the proxy, and it dials the peer.

Forwards TLS unchanged. Knows sockets; ``network_line`` has the effect of the network on octets.
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


class Proxy:
    """A port that leads to a peer through a network.

    Attributes:
        url: the URL to dial, with the scheme and the credentials of the target.
        networks: the network of each connection so far, in the order of arrival.
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
        """Cut every connection that exists now."""
        for network in self.networks:
            network.cut(how)

    async def carry(self, near: trio.abc.Stream) -> None:
        """Forward one connection until it ends. Cancelled: both ends are closed."""
        async with near:
            try:
                far = await _dialled(self._target)
            except OSError:
                return  # the peer does not answer, so the client's stream ends
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
    """Open a proxy for ``target``: ``async with open_proxy(url) as proxy``.

    The proxy listens at a port of this machine, and connects clients to the target through a network. With sockets, a reader may
    receive several pieces at once, and time is that of the machine.

    Args:
        target: the URL of the peer.
        there: the effect on octets from the client to the peer; a sequence has one for each connection, and the
            last one also for all later connections.
        back: the effect on octets from the peer to the client, as ``there``.
        seed: the seed for sizes and jitter of the first connection; each later connection adds 1.
        recorder: a recorder of the conversations, from the peer's side of the network.

    Raises:
        LocalProtocolError: ``target`` is not a URL.

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
    """Run ``open_proxy`` in a thread: ``with running_proxy(url) as proxy_url``.

    For code that does not use trio.

    Args:
        target: the URL of the peer.
        there: as for ``open_proxy``.
        back: as for ``open_proxy``.
        seed: as for ``open_proxy``.
        recorder: as for ``open_proxy``.

    Raises:
        LocalProtocolError: ``target`` is not a URL.
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
