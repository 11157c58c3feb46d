"""Certificates for tests: one authority that is believed, one that is not, and what they signed."""

from __future__ import annotations

import datetime
import os
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import trustme

from trio_amqp10 import tls

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "localhost"


class Issued:
    """A certificate with its key, in one file."""

    def __init__(self, certificate: trustme.LeafCert, folder: Path, name: str) -> None:
        self.file = folder / f"{name}.pem"
        certificate.private_key_and_cert_chain_pem.write_to_path(self.file)
        pem = certificate.cert_chain_pems[0].bytes().decode()
        self.der = ssl.PEM_cert_to_DER_cert(pem)


class Authority:
    """A certificate authority that signs what a test asks for."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ca = trustme.CA(organization_name=name)
        self._folder = folder
        self._name = name
        self._count = 0
        self.cafile = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(self.cafile)

    def issue(self, *names: str, common_name: str | None = None, expired: bool = False) -> Issued:
        """A certificate for these names."""
        self._count += 1
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=-1 if expired else 1)
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)
        leaf = self._ca.issue_cert(
            *(names or (HOST, "127.0.0.1")), common_name=common_name, not_before=begin, not_after=end
        )
        # Processes that were forked after the authority was made share its folder.
        return Issued(leaf, self._folder, f"{self._name}-{os.getpid()}-{self._count}")


def _folders() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        while True:
            yield Path(folder)


_FOLDERS = _folders()


def authority(name: str = "believed") -> Authority:
    """The same one for all tests: keys take time to make."""
    return _made(name)


@cache
def _made(name: str) -> Authority:
    return Authority(next(_FOLDERS), name)


@cache
def _server_certificate() -> Issued:
    return authority().issue()


def serving(*, clients: str | None = None, required: bool = True) -> tls.ServerContext:
    """A listener's context for ``localhost`` and 127.0.0.1; ``clients`` names the authority of theirs."""
    return tls.server_context(
        _server_certificate().file,
        client_cafile=None if clients is None else authority(clients).cafile,
        client_certificate_required=required,
    )


def believing(name: str = "believed") -> ssl.SSLContext:
    """A dialler's context that believes one authority."""
    return tls.client_context(authority(name).cafile)
