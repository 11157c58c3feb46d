"""Options of all commands that dial: passwords, certificates, trust, patience.

Knows click; each client defines which failures are final.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from .option_types import FILE, SECONDS
from .server_defaults import place_of, server_defaults

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.amqp091.client.connection import Connection as Connection091
    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.net.dialling_base import DiallingBase

C = TypeVar("C", bound=Any)

_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0
"""Seconds between two attempts to dial: first, and at most."""
_SILENCE: Final = 1.0
"""Seconds after which a command reports that it waits for its server."""


@dataclass(frozen=True, kw_only=True)
class DialOptions:
    """The options of a command for its connection."""

    allow_plaintext_password: bool = False
    cafile: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False
    wait: float | None = None

    def dial(self, url: str, *, hostname: str | None = None) -> AbstractAsyncContextManager[Connection]:
        """Make the connection of the command, not yet open.

        Args:
            url: the URL to dial.
            hostname: the hostname of the ``open`` frame; that of the URL if None.

        Raises:
            LocalProtocolError: the options of TLS contradict each other, or do not fit this URL.
        """
        from trio_amqp10 import open_connection

        return self._opened(url, partial(open_connection, url, hostname=hostname, **self._given()))

    def dial_091(self, url: str) -> AbstractAsyncContextManager[Connection091]:
        """Make the connection of the command in AMQP 0-9-1, not yet open.

        Raises:
            LocalProtocolError: as ``dial``.
        """
        from trio_amqp10.amqp091 import open_connection

        return self._opened(url, partial(open_connection, url, **self._given()))

    def _given(self) -> dict[str, Any]:
        return {
            "allow_plaintext_password": self.allow_plaintext_password,
            "cafile": self.cafile,
            "certfile": self.cert,
            "keyfile": self.key,
            "insecure": self.insecure,
        }

    def _opened(self, url: str, make: Callable[[], DiallingBase[C, Any]]) -> AbstractAsyncContextManager[C]:
        make()  # raises at once if the options are not valid
        return _dialled(url, make, self.wait)


@asynccontextmanager
async def _dialled(
    url: str, make: Callable[[], DiallingBase[C, Any]], seconds: float | None
) -> AsyncGenerator[C]:
    """Dial once, or until the server is there, for at most ``seconds``.

    Raises:
        OSError, AmqpError: the last failure, or one that another attempt would only repeat; with a note of the server.
    """
    import trio

    from trio_amqp10.net.errors import ConnectionClosedError

    from .command_runner import Dialled, note_dialled, say

    place = place_of(url)
    authority = str(place) if place.scheme == "amqp+unix" else place.authority
    start, pause = trio.current_time(), _PAUSE
    end = start + (seconds or 0.0)
    reports = seconds is not None
    while True:
        dialling = make()
        began = trio.current_time()
        stack = AsyncExitStack()
        try:
            connection = await stack.enter_async_context(dialling)
        except Exception as failure:
            left = end - trio.current_time()
            dialled = Dialled(
                authority=authority,
                user=place.username,
                source=server_defaults().login_source(url),
                seconds=trio.current_time() - began,
            )
            note_dialled(failure, dialled)
            missing = isinstance(failure, (OSError, ConnectionClosedError))
            if not missing or left <= 0 or dialling.recovery_class.is_final(failure):
                raise
            if reports and trio.current_time() - start >= _SILENCE:
                say(f"amqp10: waiting for {authority}")
                reports = False
            await trio.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            break
    async with stack:
        try:
            yield connection
        except Exception as failure:
            source = server_defaults().login_source(url)
            user = place.username
            note_dialled(failure, Dialled(authority=authority, user=user, source=source, is_open=True))
            raise


wait_option: Final = click.option(
    "--wait",
    metavar="SECONDS",
    type=SECONDS,
    help="Dial again for this long if the server is not there yet.",
)


def dialling(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for dialling to a command, as its argument ``dial``."""
    made = wait_option(tls_dialling(command))
    return click.option(
        "--allow-plaintext-password",
        is_flag=True,
        help="Send a password over a connection that is not encrypted (to this machine it is always sent).",
    )(made)


def tls_dialling(command: Callable[..., None]) -> Callable[..., None]:
    """Add the TLS options of ``dialling`` to a command that sends no password."""

    @click.option(
        "--tls-ca",
        metavar="FILE",
        type=FILE,
        help="Trust these certificate authorities instead of those of the system.",
    )
    @click.option(
        "--tls-cert",
        metavar="FILE",
        type=FILE,
        help="The client certificate; its key may be in the same file.",
    )
    @click.option(
        "--tls-key", metavar="FILE", type=FILE, help="The key of --tls-cert, if it is in another file."
    )
    @click.option(
        "--insecure",
        is_flag=True,
        help="Do not verify the peer's certificate; any server could then pretend to be the peer.",
    )
    @wraps(command)
    def with_dialling(
        tls_ca: str | None,
        tls_cert: str | None,
        tls_key: str | None,
        insecure: bool,
        allow_plaintext_password: bool = False,
        wait: float | None = None,
        **others: Any,
    ) -> None:
        dial = DialOptions(
            allow_plaintext_password=allow_plaintext_password,
            cafile=tls_ca,
            cert=tls_cert,
            key=tls_key,
            insecure=insecure,
            wait=wait,
        )
        target = others.get("target")
        url = others.get("url") if target is None or isinstance(target, str) else target[0]
        command(dial=dial if url is None else completed(dial, url), **others)

    return with_dialling


def completed(dial: DialOptions, url: str) -> DialOptions:
    """Add the options of the context for this server, below our own."""
    known = server_defaults()
    if not known.covers(url):
        return dial
    if dial.cafile is None and dial.cert is None and dial.key is None:
        dial = replace(dial, cafile=known.tls_ca, cert=known.tls_cert, key=known.tls_key)
    plaintext = dial.allow_plaintext_password or known.allow_plaintext_password
    return replace(dial, allow_plaintext_password=plaintext)
