"""Options of all commands that dial: passwords, certificates, trust."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .option_types import FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.client.dial import Dialling as Dialling091
    from trio_amqp10.peer.dialling import Dialling

__all__ = ["DialOptions", "dialling", "tls_dialling"]


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
    return click.option(
        "--allow-plaintext-password",
        is_flag=True,
        help="Allow sending a password over a connection that is not encrypted (to this machine it is always allowed).",
    )(tls_dialling(command))


def tls_dialling(command: Callable[..., None]) -> Callable[..., None]:
    """As ``dialling``, for a command that sends no password of its own: the options of TLS alone."""

    @click.option(
        "--tls-ca",
        metavar="FILE",
        type=FILE,
        help="Certificate authorities to trust, instead of the system's.",
    )
    @click.option(
        "--tls-cert",
        metavar="FILE",
        type=FILE,
        help="The client certificate; the file may also have its key.",
    )
    @click.option("--tls-key", metavar="FILE", type=FILE, help="The key of --tls-cert.")
    @click.option(
        "--insecure",
        is_flag=True,
        help="Do not verify the certificate; anyone could then pretend to be the peer.",
    )
    @wraps(command)
    def with_dialling(
        tls_ca: str | None,
        tls_cert: str | None,
        tls_key: str | None,
        insecure: bool,
        allow_plaintext_password: bool = False,
        **others: Any,
    ) -> None:
        dial = DialOptions(
            allow_plaintext_password=allow_plaintext_password,
            cafile=tls_ca,
            cert=tls_cert,
            key=tls_key,
            insecure=insecure,
        )
        command(dial=dial, **others)

    return with_dialling
