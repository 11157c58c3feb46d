"""Commands without a process of their own, and certificates and users for them."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from trio_amqp10.tools.cli import commands
from trio_amqp10.tools.cli.certs import CertsOptions, certs


def amqp10(*arguments: str, stdin: bytes = b"") -> Result:
    """A command that needs no process of its own."""
    return CliRunner().invoke(commands.amqp10, arguments, input=stdin)


def done(*arguments: str, stdin: bytes = b"") -> bytes:
    result = amqp10(*arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes


def failed(*arguments: str, stdin: bytes = b"") -> str:
    result = amqp10(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    return result.stderr.removesuffix("\n")


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def made(directory: Path, **changes: Any) -> list[str]:
    options = {
        "hosts": ("localhost", "127.0.0.1"),
        "clients": ("ada",),
        "days": 30,
        "renew": False,
        **changes,
    }
    return [Path(path).name for path in certs(CertsOptions(directory=str(directory), **options))]


def connect(directory: Path, host: str, *, client: str | None = None, ca: Path | None = None) -> str:
    """Both ends of TLS in memory; returns what the server knows of its client."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "ca.pem"))
    server.load_cert_chain(directory / "server.pem", directory / "server-key.pem")
    server.verify_mode = ssl.CERT_OPTIONAL
    theirs = ssl.create_default_context(cafile=str(ca or directory / "ca.pem"))
    for context in (server, theirs):
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    if client is not None:
        theirs.load_cert_chain(directory / f"{client}.pem", directory / f"{client}-key.pem")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        theirs.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    )
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not waiting
    known: Any = ends[1].getpeercert()
    return str(known["subjectAltName"][0][1]) if known else ""


def files(tls: Path, **options: str) -> list[str]:
    return [
        word for name, file in options.items() for word in (f"--{name.replace('_', '-')}", str(tls / file))
    ]
