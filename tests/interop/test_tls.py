"""Qpid Proton and us over TLS, both ways round, by each way to say who one is that both have."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, believing, serving

from . import exchange
from .conftest import need
from .peers import PEERS, PeerError

if TYPE_CHECKING:
    from pathlib import Path

    from .peers import Client

CA = str(authority().cafile)
CLIENTS = str(authority("clients").cafile)
COUNT = 200
USERS = {"ann": "s3cret"}


def ann() -> str:
    return str(authority("clients").issue(common_name="ann").file)


def dialling(proton: Client, mechanism: str, *flags: str, **serve: Any) -> Client:
    """Proton as the one who dials; it believes our certificate."""
    given = ("--cafile", CA, "--mechanism", mechanism, *flags)
    options = {"ssl_context": serving()} | serve
    return replace(proton, scheme="amqps", host="localhost", run_flags=given, serve=options)


def listening(proton: Client, mechanism: str, *flags: str, **dial: Any) -> Client:
    """Proton as the one who listens; we believe its certificate."""
    certfile = str(authority().issue().file)
    given = ("--certfile", certfile, "--mechanism", mechanism, *flags)
    return replace(proton, scheme="amqps", listen_flags=given, dial={"cafile": CA} | dial)


def external(certificate: amqp.tls.Certificate) -> str | None:
    return certificate.common_name


@pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
def test_proton_exchanges_the_corpus_over_tls_when_it_dials(proton: Client, presettled: bool) -> None:
    peer = dialling(proton, "ANONYMOUS")
    exchange.we_listen_and_receive(peer, presettled, count=COUNT)
    exchange.we_listen_and_send(peer, presettled, count=COUNT)


@pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
def test_proton_exchanges_the_corpus_over_tls_when_we_dial(proton: Client, presettled: bool) -> None:
    peer = listening(proton, "ANONYMOUS", sasl=amqp.sasl.Anonymous())
    exchange.we_dial_and_send(peer, presettled, count=COUNT)
    exchange.we_dial_and_receive(peer, presettled, count=COUNT)


@pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
def test_proton_exchanges_the_corpus_when_we_ask_for_tls_by_protocol_id(
    proton: Client, presettled: bool
) -> None:
    """Its listener takes our header of TLS and answers with the handshake alone. It never dials so itself."""
    peer = replace(listening(proton, "ANONYMOUS", sasl=amqp.sasl.Anonymous()), scheme="amqp+tls")
    exchange.we_dial_and_send(peer, presettled, count=COUNT)
    exchange.we_dial_and_receive(peer, presettled, count=COUNT)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_proton_says_who_it_is_by_a_password_over_tls(proton: Client, mechanism: str) -> None:
    scram = [mechanism] if mechanism.startswith("SCRAM") else None
    peer = dialling(proton, mechanism, sasl=amqp.sasl.Server(USERS, scram=scram))
    named = replace(peer, run_flags=(*peer.run_flags, "--user", "ann", "--password", "s3cret"))
    exchange.we_listen_and_receive(named, False, count=10)
    wrong = replace(peer, scheme="amqps", run_flags=(*peer.run_flags, "--user", "ann", "--password", "wrong"))
    with pytest.raises(BaseException) as caught:
        exchange.we_listen_and_receive(wrong, False, count=10)
    assert caught.group_contains(PeerError, match="ended with 1")


@pytest.fixture
def users(tmp_path: Path) -> str:
    """A folder of Cyrus SASL with ann in it, for a Proton that listens."""
    need("cyrus")
    database = tmp_path / "users.db"
    # The realm is the host's name, as Cyrus has it for who names none.
    realm = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    for each in {realm, "localhost"}:
        subprocess.run(
            [PEERS / "cyrus/usr/sbin/saslpasswd2", "-p", "-c", "-f", database, "-u", each, "ann"],
            input=b"s3cret",
            check=True,
            timeout=10,
        )
    (tmp_path / "proton-server.conf").write_text(
        f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {database}\n"
        "mech_list: PLAIN SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512\n"
    )
    return str(tmp_path)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_proton_knows_us_by_our_password_over_tls(proton: Client, users: str, mechanism: str) -> None:
    def says(password: str) -> amqp.sasl.ClientMechanism:
        if mechanism == "PLAIN":
            return amqp.sasl.Plain("ann", password)
        return amqp.sasl.Scram("ann", password, mechanism)

    flags = ("--sasl-config", users)
    exchange.we_dial_and_send(listening(proton, mechanism, *flags, sasl=says("s3cret")), False, count=10)
    wrong = listening(proton, mechanism, *flags, sasl=says("wrong"))
    with pytest.raises(amqp.sasl.AuthenticationError):
        exchange.we_dial_and_send(wrong, False, count=10)


def test_proton_says_who_it_is_by_its_certificate(proton: Client) -> None:
    sasl = amqp.sasl.Server(mechanisms=[amqp.sasl.ExternalServer(external)])
    peer = dialling(
        proton, "EXTERNAL", "--certfile", ann(), sasl=sasl, ssl_context=serving(clients="clients")
    )
    exchange.we_listen_and_receive(peer, False, count=10)


def test_proton_knows_us_by_our_certificate(proton: Client) -> None:
    peer = listening(proton, "EXTERNAL", "--cafile", CLIENTS, sasl=amqp.sasl.External(), certfile=ann())
    exchange.we_dial_and_send(peer, False, count=10)


def test_proton_refuses_our_certificate_when_it_is_foreign(proton: Client) -> None:
    foreign = str(authority("foreign").issue(common_name="ann").file)
    peer = listening(proton, "EXTERNAL", "--cafile", CLIENTS, sasl=amqp.sasl.External(), certfile=foreign)
    with pytest.raises((amqp.SecurityError, amqp.ConnectionClosedError)):
        exchange.we_dial_and_send(peer, False, count=10)


def test_we_refuse_protons_certificate_when_it_is_foreign(proton: Client) -> None:
    peer = replace(listening(proton, "ANONYMOUS"), dial={"ssl_context": believing("foreign")})
    with pytest.raises(amqp.SecurityError, match="is not valid"):
        exchange.we_dial_and_send(peer, False, count=10)
