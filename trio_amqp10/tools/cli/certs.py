"""``amqp10 certs``: make a development authority, and certificates signed by it.

Writes ``ca.pem``, ``server.pem``, ``NAME.pem`` for each client, and for each its key, ``*-key.pem``, which only its owner can
read. An existing authority is used again, and never replaced.

Needs ``cryptography``, of the extra ``[tls]``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "amqp10 certs needs cryptography; install it with: pip install 'trio-amqp10[tls]'"
    ) from None

from .command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SKEW: Final = timedelta(minutes=5)
"""How far the clock of a verifying peer may be behind ours."""
_NAME: Final = re.compile(r"[A-Za-z0-9._@-]+")


@dataclass(frozen=True, kw_only=True)
class CertsOptions:
    """The options of ``amqp10 certs``."""

    directory: str
    hosts: Sequence[str]
    clients: Sequence[str]
    days: int
    renew: bool


def certs(options: CertsOptions) -> list[str]:
    """Make the certificates; return the names of the files that were written.

    Raises:
        CommandError: a file exists, the authority cannot be used or has expired, or a name is not valid.
        OSError: a file cannot be written.
    """
    for name in options.clients:
        if not _NAME.fullmatch(name) or name.startswith((".", "-")) or name in ("ca", "server"):
            raise CommandError(
                f"{name!r} cannot be the name of a client, because it becomes the name of a file: use letters, digits, ., _, @ and -"
            )
    directory = Path(options.directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = ["server", *options.clients]
    there = [str(path) for name in wanted for path in _paths(directory, name) if path.exists()]
    if there and not options.renew:
        raise CommandError(f"{there[0]} exists: --renew replaces certificates, but never an authority")
    now = datetime.now(UTC)
    authority, written = _authority(directory, now, options.days)
    for name in wanted:
        is_server = name == "server"
        names = [_general_name(host) for host in (options.hosts if is_server else [name])]
        written += authority.issue(directory, name, names, is_server, now, options.days)
    return written


def _authority(directory: Path, now: datetime, days: int) -> tuple[_Authority, list[str]]:
    certificate_path, key_path = _paths(directory, "ca")
    if certificate_path.exists() or key_path.exists():
        return _load(certificate_path, key_path, now), []
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trio-amqp10 development authority")])
    builder = _builder(name, name, key.public_key(), key.public_key(), now, now + timedelta(days=days))
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key), _write(directory, "ca", certificate, key)


def _load(certificate_path: Path, key_path: Path, now: datetime) -> _Authority:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
        key: Any = serialization.load_pem_private_key(key_path.read_bytes(), None)
    except (ValueError, TypeError, OSError) as failure:
        raise CommandError(
            f"{certificate_path} and {key_path} cannot be used as an authority ({failure}): "
            "delete both to make a new one, which peers must then trust"
        ) from None
    if certificate.public_key() != key.public_key():
        raise CommandError(f"{key_path} is not the key of {certificate_path}")
    if certificate.not_valid_after_utc <= now:
        raise CommandError(f"{certificate_path} has expired: delete it and {key_path} to make a new one")
    return _Authority(certificate, key)


class _Authority:
    """The certificate that signs others, and its key."""

    def __init__(self, certificate: x509.Certificate, key: Any) -> None:
        self._certificate = certificate
        self._key = key

    def issue(
        self,
        directory: Path,
        name: str,
        names: Sequence[x509.GeneralName],
        is_server: bool,
        now: datetime,
        days: int,
    ) -> list[str]:
        """Make a key and a certificate; return their files.

        The certificate ends no later than the authority.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if is_server else ExtendedKeyUsageOID.CLIENT_AUTH
        end = min(now + timedelta(days=days), self._certificate.not_valid_after_utc)
        builder = _builder(
            subject, self._certificate.subject, key.public_key(), self._key.public_key(), now, end
        )
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _write(directory, name, certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: Any, issuers: Any, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuers), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        if "@" in name:
            return x509.RFC822Name(name)
        return x509.DNSName(name.encode("idna").decode() if not name.isascii() else name)
    except ValueError as wrong:
        raise CommandError(f"{name!r} cannot be in a certificate: {wrong}") from None


# -- files


def _paths(directory: Path, name: str) -> tuple[Path, Path]:
    return directory / f"{name}.pem", directory / f"{name}-key.pem"


def _write(directory: Path, name: str, certificate: x509.Certificate, key: Any) -> list[str]:
    certificate_path, key_path = _paths(directory, name)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _replace(key_path, pem, 0o600)
    _replace(certificate_path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
    return [str(certificate_path), str(key_path)]


def _replace(path: Path, octets: bytes, mode: int) -> None:
    """Write a file, whole or not at all; other users can never read a key."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "wb") as file:
            file.write(octets)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        raise
