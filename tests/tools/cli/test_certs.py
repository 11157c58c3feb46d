"""amqp10 certs makes an authority, and certificates that it signs."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from trio_amqp10.tools.cli.command_runner import CommandError

from .without_a_process import connect, made, mode

if TYPE_CHECKING:
    from pathlib import Path


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_certs_make_a_server_and_clients_that_trust_each_other(tmp_path: Path) -> None:
    written = made(tmp_path / "tls", clients=("ada", "bob@example.org"))
    assert written == [
        f"{name}{what}.pem" for name in ("ca", "server", "ada", "bob@example.org") for what in ("", "-key")
    ]
    assert connect(tmp_path / "tls", "localhost", client="ada") == "ada"
    assert connect(tmp_path / "tls", "127.0.0.1", client="bob@example.org") == "bob@example.org"
    assert connect(tmp_path / "tls", "localhost") == ""
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        connect(tmp_path / "tls", "example.org")
    made(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(tmp_path / "tls", "localhost", ca=tmp_path / "other" / "ca.pem")


def test_certs_keep_keys_to_their_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made(tmp_path / "tls")
    finally:
        os.umask(before)
    for path in (tmp_path / "tls").iterdir():
        assert mode(path) == (0o600 if "-key" in path.name else 0o644)
    assert mode(tmp_path / "tls") == 0o700


def test_certs_use_an_authority_again_and_never_replace_it(tmp_path: Path) -> None:
    made(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CommandError, match=r"server\.pem exists: --renew"):
        made(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert made(tmp_path, renew=True, clients=("bob",)) == [
        "server.pem",
        "server-key.pem",
        "bob.pem",
        "bob-key.pem",
    ]
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"server.pem", "server-key.pem"}
    assert connect(tmp_path, "localhost", client="ada") == "ada"


def test_certs_last_as_long_as_asked_and_no_longer_than_their_authority(tmp_path: Path) -> None:
    made(tmp_path, days=10)
    made(tmp_path, days=100, renew=True)
    ends = [load(tmp_path / f"{name}.pem").not_valid_after_utc for name in ("ca", "server", "ada")]
    assert len(set(ends)) == 1
    assert timedelta(days=9) < ends[0] - datetime.now(UTC) <= timedelta(days=10)


def test_certs_fail_where_the_authority_is_none(tmp_path: Path) -> None:
    made(tmp_path / "a")
    made(tmp_path / "b")
    directory = tmp_path / "a"
    (directory / "ca-key.pem").write_bytes((tmp_path / "b" / "ca-key.pem").read_bytes())
    with pytest.raises(CommandError, match="is not the key of"):
        made(directory, renew=True)
    (directory / "ca-key.pem").write_bytes(b"?")
    with pytest.raises(CommandError, match=r"cannot be used as an authority"):
        made(directory, renew=True)
    (directory / "ca-key.pem").unlink()
    with pytest.raises(CommandError, match=r"cannot be used as an authority"):
        made(directory, renew=True)


def test_certs_fail_where_the_authority_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.tools.cli import certs as module

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=31)

    made(tmp_path)
    monkeypatch.setattr(module, "datetime", Later)
    with pytest.raises(CommandError, match="has expired"):
        made(tmp_path, renew=True)


@pytest.mark.parametrize("name", ["", "ca", "server", "../x", ".x", "-x", "a b", "\u00fc"])
def test_certs_refuse_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="cannot be the name of a client"):
        made(tmp_path / "tls", clients=(name,))
    assert not (tmp_path / "tls").exists()


def test_certs_refuse_hosts_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be in a certificate"):
        made(tmp_path, hosts=("\u00fc" * 100,))
    assert made(tmp_path / "ok", hosts=("m\u00fcnchen.example",))
    names = load(tmp_path / "ok" / "server.pem").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["xn--mnchen-3ya.example"]
