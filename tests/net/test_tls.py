"""Contexts of TLS: which are safe, which are refused, and the names in certificates."""

from __future__ import annotations

import shutil
import ssl
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, believing, serving
from tests.amqp10.peer.certificates import CA, url
from tests.amqp10.peer.dialled import dial
from tests.amqp10.peer.helpers import Node, idle, listening
from trio_amqp10 import tls

if TYPE_CHECKING:
    from pathlib import Path


def test_contexts_are_modern_and_verify() -> None:
    client, server = believing(), serving()
    for context in (client, server):
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
        assert context.options & ssl.OP_NO_RENEGOTIATION
    assert (client.verify_mode, client.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert server.num_tickets == 0
    assert server.options & ssl.OP_NO_TICKET


def test_cafile_takes_the_place_of_the_authorities_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority("system").cafile))
    assert [names(each) for each in tls.client_context().get_ca_certs()] == ["system"]
    assert [names(each) for each in believing().get_ca_certs()] == ["believed"]


def names(certificate: dict[str, Any]) -> str:
    return str(dict(row[0] for row in certificate["subject"])["organizationName"])


def unchecked(context: ssl.SSLContext) -> None:
    context.check_hostname = False


def unverified(context: ssl.SSLContext) -> None:
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE


def old(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED


def anonymous(context: ssl.SSLContext) -> None:
    context.set_ciphers("ADH-AES256-GCM-SHA384:@SECLEVEL=0")


def unencrypted(context: ssl.SSLContext) -> None:
    context.set_ciphers("ECDHE-RSA-NULL-SHA:@SECLEVEL=0")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unchecked, "does not verify host names"),
        (unverified, "does not verify certificates"),
        (old, "set minimum_version to TLSVersion.TLSv1_2"),
        (anonymous, "accepts the cipher ADH-AES256-GCM-SHA384"),
        (unencrypted, "accepts the cipher ECDHE-RSA-NULL-SHA"),
    ],
)
def test_row_06_context_that_is_not_safe_is_refused(spoil: Any, said: str) -> None:
    context = believing()
    spoil(context)
    with pytest.raises(amqp.LocalProtocolError, match=said):
        amqp.open_connection("amqps://h", ssl_context=context)


async def test_row_06_context_of_a_listener_that_is_not_safe_is_refused() -> None:
    for spoil, said in ((old, "TLSv1_2"), (anonymous, "ADH-AES256"), (unencrypted, "NULL")):
        context = serving()
        spoil(context)
        with pytest.raises(amqp.LocalProtocolError, match=said):
            await amqp.serve(idle, url(), ssl_context=context)
    with pytest.raises(amqp.LocalProtocolError, match="is a client's"):
        await amqp.serve(idle, url(), ssl_context=believing())


async def test_listener_switches_renegotiation_off_in_a_context_of_somebody_elses() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority().issue().file)
    assert not context.options & ssl.OP_NO_RENEGOTIATION
    async with listening(idle, url(), ssl_context=context) as [listener]:
        assert context.options & ssl.OP_NO_RENEGOTIATION
        await dial(listener.url, cafile=CA)


def test_contexts_raise_when_a_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        tls.client_context(tmp_path / "none")
    with pytest.raises(OSError, match="No such file"):
        tls.server_context(tmp_path / "none")
    with pytest.raises(amqp.LocalProtocolError, match="would ignore cafile"):
        tls.client_context(CA, insecure=True)


async def test_reload_gives_new_connections_the_new_certificate_and_keeps_the_old_ones(
    tmp_path: Path,
) -> None:
    certfile = tmp_path / "certificate.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    context = tls.server_context(certfile)
    node = Node()
    async with (
        listening(node.handle, url(), ssl_context=context) as [listener],
        amqp.open_connection(listener.url, cafile=CA) as old_one,
        old_one.open_sender("q") as sender,
    ):
        shutil.copy(second.file, certfile)
        context.reload()
        assert context.certificate == second.der
        async with amqp.open_connection(listener.url, cafile=authority("next").cafile):
            await sender.send("still here")
        with pytest.raises(amqp.SecurityError):
            await dial(listener.url, cafile=CA)
    assert node.got == ["still here"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_reload_has_new_clients_verified_by_the_new_authorities_and_keeps_the_old_ones(
    version: ssl.TLSVersion, tmp_path: Path
) -> None:
    certfile, cafile = tmp_path / "certificate.pem", tmp_path / "clients.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    shutil.copy(authority("clients").cafile, cafile)
    context = tls.server_context(certfile, client_cafile=cafile)
    node = Node()

    def known(believed: str, client: str) -> dict[str, Any]:
        ours = tls.client_context(
            authority(believed).cafile,
            certfile=authority(client).issue("ann.example", common_name="ann").file,
        )
        ours.maximum_version = version
        return {"ssl_context": ours}

    async with (
        listening(node.handle, url(), ssl_context=context) as [listener],
        amqp.open_connection(listener.url, **known("believed", "clients")) as old_one,
        old_one.open_sender("q") as sender,
    ):
        shutil.copy(second.file, certfile)
        shutil.copy(authority("new clients").cafile, cafile)
        context.reload()
        await dial(listener.url, **known("next", "new clients"))
        with pytest.raises((amqp.SecurityError, amqp.ConnectionClosedError)):
            await dial(listener.url, **known("next", "clients"))
        await sender.send("still here")
        cafile.write_text("not a certificate\n")
        with pytest.raises(ssl.SSLError):
            context.reload()
        await dial(listener.url, **known("next", "new clients"))
        context.load_verify_locations(authority("clients").cafile)
        context.load_cert_chain(first.file)
        await dial(listener.url, **known("believed", "clients"))
    assert node.got == ["still here"]


async def test_reload_leaves_it_to_a_callback_which_context_a_name_has(tmp_path: Path) -> None:
    elsewhere = tls.server_context(authority("next").issue("127.0.0.1", "localhost").file)
    context = tls.server_context(
        authority().issue("127.0.0.1").file, client_cafile=authority("clients").cafile
    )
    asked: list[str | None] = []

    def choose(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        asked.append(name)
        tls.context = elsewhere

    context.sni_callback = choose
    context.verify_mode = ssl.CERT_OPTIONAL
    async with listening(idle, url(), ssl_context=context) as [listener]:
        context.reload()
        await dial(listener.url, cafile=authority("next").cafile, server_hostname="localhost")
    assert asked == ["localhost"]


@pytest.mark.parametrize("clients", [False, True])
async def test_files_that_were_read_again_are_used_when_that_is_asked_for(
    clients: bool, tmp_path: Path
) -> None:
    certfile = tmp_path / "certificate.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    context = tls.server_context(certfile, client_cafile=authority("clients").cafile if clients else None)
    context.verify_mode = ssl.CERT_OPTIONAL if clients else ssl.CERT_NONE
    async with listening(idle, url(), ssl_context=context) as [listener]:
        shutil.copy(second.file, certfile)
        use = context.read_again()
        await dial(listener.url, cafile=CA)
        assert context.certificate == first.der
        certfile.write_text("not a certificate\n")  # What was read is used, whatever the file has now.
        use()
        await dial(listener.url, cafile=authority("next").cafile)
        assert context.certificate == second.der


async def test_reload_of_what_cannot_be_used_leaves_the_old_one(tmp_path: Path) -> None:
    certfile, keyfile = tmp_path / "certificate.pem", tmp_path / "key.pem"
    first, second = authority().issue("127.0.0.1"), authority("next").issue("127.0.0.1")
    shutil.copy(first.file, certfile)
    shutil.copy(first.file, keyfile)
    context = tls.server_context(certfile, keyfile)
    async with listening(idle, url(), ssl_context=context) as [listener]:
        shutil.copy(second.file, certfile)  # and its key is not there yet
        with pytest.raises(ssl.SSLError, match="mismatch"):
            context.reload()
        assert context.certificate == first.der
        await dial(listener.url, cafile=CA)
    with pytest.raises(amqp.LocalProtocolError, match="load_cert_chain"):
        tls.ServerContext(ssl.PROTOCOL_TLS_SERVER).reload()


async def test_certificate_of_a_client_tells_its_names() -> None:
    issued = authority("clients").issue("ann.example", "ann@example.org", common_name="ann")
    seen: list[tls.Certificate] = []

    def identify(certificate: tls.Certificate) -> str | None:
        seen.append(certificate)
        return certificate.common_name

    identities: list[Any] = []

    async def handle(conn: amqp.Connection) -> None:
        identities.append(conn.identity)

    sasl = amqp.sasl.Server(mechanisms=[amqp.sasl.ExternalServer(identify)])
    async with listening(handle, url(), ssl_context=serving(clients="clients"), sasl=sasl) as [listener]:
        await dial(listener.url, cafile=CA, certfile=issued.file)
    [certificate] = seen
    assert certificate.der == issued.der
    assert certificate.alternative_names("DNS") == ("ann.example",)
    assert certificate.alternative_names("email") == ("ann@example.org",)
    assert repr(certificate) == "<Certificate 'ann'>"
    assert [(one.name, one.mechanism) for one in identities] == [("ann", "EXTERNAL")]


def test_common_name_is_none_unless_there_is_exactly_one() -> None:
    cn = (("commonName", "a"),)
    assert tls.Certificate(b"", {"subject": (cn,)}).common_name == "a"
    assert tls.Certificate(b"", {"subject": (cn, cn)}).common_name is None
    assert tls.Certificate(b"", {}).common_name is None
