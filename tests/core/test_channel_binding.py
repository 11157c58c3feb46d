"""``tls-server-end-point`` (RFC 5929, section 4), with real certificates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import new
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.sasl import tls_server_end_point

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def certificate(key: Any, algorithm: Any, **options: Any) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "example.com")])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(key, algorithm, **options).public_bytes(Encoding.DER)


DER = certificate(EC, hashes.SHA256())


@pytest.mark.parametrize("key", [RSA, EC])
@pytest.mark.parametrize("algorithm", [hashes.SHA224(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512()])
def test_end_point_is_a_hash_by_the_algorithm_of_the_signature(key: Any, algorithm: Any) -> None:
    der = certificate(key, algorithm)
    assert tls_server_end_point(der) == new(algorithm.name, der).digest()


@pytest.mark.parametrize("algorithm", [hashes.SHA256(), hashes.SHA384(), hashes.SHA512()])
def test_end_point_finds_the_hash_of_rsassa_pss_in_its_parameters(algorithm: Any) -> None:
    der = certificate(RSA, algorithm, rsa_padding=padding.PSS(padding.MGF1(algorithm), 32))
    assert tls_server_end_point(der) == new(algorithm.name, der).digest()


@pytest.mark.parametrize("oid", ["06092a864886f70d010104", "06092a864886f70d010105", "06072a8648ce3d0401"])
def test_end_point_puts_sha_256_in_the_place_of_weak_hashes(oid: str) -> None:
    der = made_up(oid)
    assert tls_server_end_point(der) == new("sha256", der).digest()


def element(tag: int, content: bytes) -> bytes:
    assert len(content) < 0x80
    return bytes([tag, len(content)]) + content


def made_up(oid: str, parameters: bytes = b"\5\0") -> bytes:
    """Return the parts of a certificate that the channel binding reads."""
    return element(0x30, element(0x30, b"tbs") + element(0x30, bytes.fromhex(oid) + parameters) + b"\3\1\0")


PSS = "06092a864886f70d01010a"
SHA_1 = element(0x30, bytes.fromhex("06052b0e03021a"))


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (element(0x30, b""), "sha256"),  # SHA-1, by default
        (element(0x30, element(0xA1, b"")), "sha256"),
        (element(0x30, element(0xA0, SHA_1)), "sha256"),
        (element(0x30, element(0xA0, element(0x30, bytes.fromhex("0609608648016503040204")))), "sha224"),
        (element(0x30, element(0xA0, element(0x30, bytes.fromhex("0609608648016503040208")))), None),  # SHA-3
        (element(0x30, element(0xA0, element(0x30, b""))), None),
        (element(0x30, element(0xA0, b"")), None),
        (b"\5\0", None),
    ],
)
def test_end_point_reads_the_parameters_of_rsassa_pss(parameters: bytes, name: str | None) -> None:
    der = made_up(PSS, parameters)
    assert tls_server_end_point(der) == (name and new(name, der).digest())


def test_end_point_is_undefined_for_signatures_without_a_hash() -> None:
    assert tls_server_end_point(certificate(ed25519.Ed25519PrivateKey.generate(), None)) is None


@pytest.mark.parametrize(
    "octets", [b"", b"0", b"1\0", DER[:-1], b"0\x80", b"0\x00", b"0\x020\0", b"0\x040\0000\0"]
)
def test_end_point_of_what_is_no_certificate_is_none(octets: bytes) -> None:
    assert tls_server_end_point(octets) is None


@given(position=st.integers(0, len(DER) - 1), octet=st.integers(0, 255))
def test_end_point_raises_nothing_on_a_broken_certificate(position: int, octet: int) -> None:
    tls_server_end_point(DER[:position] + bytes([octet]) + DER[position + 1 :])
    tls_server_end_point(DER[:position])
