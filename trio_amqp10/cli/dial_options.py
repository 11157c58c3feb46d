"""Options of all commands that dial: passwords, certificates, trust."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.client.dial import Dialling as Dialling091
    from trio_amqp10.peer.dialling import Dialling

__all__ = ["DialOptions", "dialling"]

_FILE = click.Path(exists=True, dir_okay=False, readable=True)


@dataclass(frozen=True, kw_only=True)
class DialOptions:
    """What the command line said."""

    allow_plaintext_password: bool = False
    cafile: str | None = None
    cert: str | None = None
    key: str | None = None
    insecure: bool = False

    def dial(self, url: str, *, hostname: str | None = None) -> Dialling:
        """The connection that the command is about, yet to be opened.

        Args:
            url: where.
            hostname: to ask for there; that of the URL if None.

        Raises:
            LocalProtocolError: what was said of TLS makes no sense together, or for this URL.
        """
        from trio_amqp10 import open_connection

        return open_connection(
            url,
            hostname=hostname,
            allow_plaintext_password=self.allow_plaintext_password,
            cafile=self.cafile,
            certfile=self.cert,
            keyfile=self.key,
            insecure=self.insecure,
        )

    def dial_091(self, url: str) -> Dialling091:
        """The same in AMQP 0-9-1.

        Raises:
            LocalProtocolError: as ``dial``.
        """
        from trio_amqp10.amqp091 import open_connection

        return open_connection(
            url,
            allow_plaintext_password=self.allow_plaintext_password,
            cafile=self.cafile,
            certfile=self.cert,
            keyfile=self.key,
            insecure=self.insecure,
        )


def dialling(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for dialling; it gets them as ``dial``, a ``DialOptions``."""

    @click.option(
        "--allow-plaintext-password",
        is_flag=True,
        help="Send a password where somebody could read along (it is always sent to this machine).",
    )
    @click.option(
        "--cafile", metavar="FILE", type=_FILE, help="Authorities to believe, in place of the system's."
    )
    @click.option("--cert", metavar="FILE", type=_FILE, help="A certificate of our own; may hold its key.")
    @click.option("--key", metavar="FILE", type=_FILE, help="The key of --cert.")
    @click.option(
        "--insecure", is_flag=True, help="Verify no certificate: anybody may then answer in the peer's name."
    )
    @wraps(command)
    def with_dialling(
        allow_plaintext_password: bool,
        cafile: str | None,
        cert: str | None,
        key: str | None,
        insecure: bool,
        **others: Any,
    ) -> None:
        dial = DialOptions(
            allow_plaintext_password=allow_plaintext_password,
            cafile=cafile,
            cert=cert,
            key=key,
            insecure=insecure,
        )
        command(dial=dial, **others)

    return with_dialling
