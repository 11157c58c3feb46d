"""What ``tls-server-end-point`` binds an exchange to: a hash of the server's certificate (RFC 5929, section 4).

Which hash is written in the certificate, so a little of its DER (X.690) is read here; both ends
of a connection get the same octets from the same certificate.

Knows no TLS and verifies nothing: that was done by those who give the certificate.
"""

from __future__ import annotations

from hashlib import new
from typing import Final

__all__ = ["tls_server_end_point"]

_SEQUENCE: Final = 0x30
_OID: Final = 0x06
_FIRST_TAGGED: Final = 0xA0

_PSS: Final = bytes.fromhex("2a864886f70d01010a")
"""RSASSA-PSS, which names its hash in its parameters (RFC 4055, section 3.1)."""

_SIGNATURES: Final = {
    bytes.fromhex(oid): name
    for oid, name in {
        "2a864886f70d010104": "sha256",  # md5WithRSAEncryption: too weak, so SHA-256 in its place
        "2a864886f70d010105": "sha256",  # sha1WithRSAEncryption: the same
        "2a864886f70d01010b": "sha256",  # sha256WithRSAEncryption
        "2a864886f70d01010c": "sha384",
        "2a864886f70d01010d": "sha512",
        "2a864886f70d01010e": "sha224",
        "2a8648ce3d0401": "sha256",  # ecdsa-with-SHA1: the same
        "2a8648ce3d040301": "sha224",
        "2a8648ce3d040302": "sha256",  # ecdsa-with-SHA256
        "2a8648ce3d040303": "sha384",
        "2a8648ce3d040304": "sha512",
    }.items()
}
_HASHES: Final = {
    bytes.fromhex(oid): name
    for oid, name in {
        "2b0e03021a": "sha256",  # SHA-1: too weak, so SHA-256 in its place
        "608648016503040201": "sha256",
        "608648016503040202": "sha384",
        "608648016503040203": "sha512",
        "608648016503040204": "sha224",
    }.items()
}


def tls_server_end_point(certificate: bytes) -> bytes | None:
    """The channel binding of a server's certificate.

    Args:
        certificate: in DER: on the client ``getpeercert(binary_form=True)``, on the server its own.

    Returns:
        Octets for ``channel_bindings["tls-server-end-point"]``. None if the signature uses no hash,
        or not one (Ed25519), for which RFC 5929 defines nothing; or if this is no certificate.
    """
    algorithm = _algorithm(certificate)
    if algorithm is None:
        return None
    oid, parameters = algorithm
    name = _hash_of_pss(parameters) if oid == _PSS else _SIGNATURES.get(oid)
    return None if name is None else new(name, certificate).digest()


def _algorithm(certificate: bytes) -> tuple[bytes, bytes] | None:
    """OID and parameters of the signature: Certificate ::= SEQUENCE { tbs, algorithm, signature }."""
    whole = _take(certificate, _SEQUENCE)
    tbs = whole and _take(whole[0], _SEQUENCE)
    algorithm = tbs and _take(tbs[1], _SEQUENCE)
    return algorithm and _take(algorithm[0], _OID)


def _hash_of_pss(parameters: bytes) -> str | None:
    """The hash in RSASSA-PSS-params ::= SEQUENCE { [0] hashAlgorithm DEFAULT sha1, ... }."""
    fields = _take(parameters, _SEQUENCE)
    tagged = fields and _take(fields[0], _FIRST_TAGGED)
    if not tagged:
        return "sha256" if fields else None
    algorithm = _take(tagged[0], _SEQUENCE)
    oid = algorithm and _take(algorithm[0], _OID)
    return _HASHES.get(oid[0]) if oid else None


def _take(data: bytes, tag: int) -> tuple[bytes, bytes] | None:
    """The content of the element that ``data`` begins with, and what follows it; None if it has another tag."""
    if len(data) < 2 or data[0] != tag:
        return None
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        return None
    return data[start : start + size], data[start + size :]
