"""The channel binding ``tls-server-end-point`` (RFC 5929, section 4).

It is a hash of the server's certificate. The certificate names the hash function, so this module reads a little of its
DER (X.690); both ends of a connection get the same octets from the same certificate.

Knows no TLS and verifies nothing: the TLS layer has verified the certificate.
"""

from __future__ import annotations

from hashlib import new
from typing import Final

_SEQUENCE: Final = 0x30
_OID: Final = 0x06
_FIRST_TAGGED: Final = 0xA0

_PSS: Final = bytes.fromhex("2a864886f70d01010a")
"""RSASSA-PSS, whose parameters name the hash (RFC 4055, section 3.1)."""

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
    """Return the channel binding of a server's certificate.

    Args:
        certificate: in DER: on the client ``getpeercert(binary_form=True)``, on the server its own.

    Returns:
        Octets for ``channel_bindings["tls-server-end-point"]``. None if RFC 5929 defines nothing for the signature, because it
        uses no hash or several (Ed25519), or if this is no certificate.
    """
    algorithm = _algorithm(certificate)
    if algorithm is None:
        return None
    oid, parameters = algorithm
    name = _hash_of_pss(parameters) if oid == _PSS else _SIGNATURES.get(oid)
    return None if name is None else new(name, certificate).digest()


def _algorithm(certificate: bytes) -> tuple[bytes, bytes] | None:
    """Return the OID and the parameters of the certificate's signature.

    Certificate ::= SEQUENCE { tbs, algorithm, signature }.
    """
    whole = _take(certificate, _SEQUENCE)
    tbs = whole and _take(whole[0], _SEQUENCE)
    algorithm = tbs and _take(tbs[1], _SEQUENCE)
    return algorithm and _take(algorithm[0], _OID)


def _hash_of_pss(parameters: bytes) -> str | None:
    """Return the hash function of RSASSA-PSS parameters, or None.

    RSASSA-PSS-params ::= SEQUENCE { [0] hashAlgorithm DEFAULT sha1, ... }.
    """
    fields = _take(parameters, _SEQUENCE)
    tagged = fields and _take(fields[0], _FIRST_TAGGED)
    if not tagged:
        return "sha256" if fields else None
    algorithm = _take(tagged[0], _SEQUENCE)
    oid = algorithm and _take(algorithm[0], _OID)
    return _HASHES.get(oid[0]) if oid else None


def _take(data: bytes, tag: int) -> tuple[bytes, bytes] | None:
    """Return the content of the first element of ``data``, and the octets after it.

    Return None if the element has another tag, or is incomplete.
    """
    if len(data) < 2 or data[0] != tag:
        return None
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        return None
    return data[start : start + size], data[start + size :]
