"""EXTERNAL (RFC 4422, appendix A): verified certificates, names, authorization."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError

from .frames import settle

CERTIFICATE = {"subject": "CN=ada"}


def identify(certificate: Any) -> str | None:
    name = certificate["subject"].removeprefix("CN=")
    return name or None


async def authorize(owner: str, other: str) -> bool:
    return (owner, other) == ("ada", "orders")


def begin(certificate: object = CERTIFICATE, **options: Any) -> sasl.ServerExchange:
    mechanism = sasl.ExternalServer(**{"identify": identify, **options})
    return mechanism.begin(sasl.ServerContext(peer_certificate=certificate))


def test_external_sends_its_authzid_or_an_empty_response() -> None:
    for authzid in ("", "orders", "zo\u00eb"):
        external = sasl.External(authzid)
        step = external.begin(sasl.ClientContext()).start()
        assert isinstance(step, sasl.Respond)
        assert step.data == authzid.encode()
        assert repr(external) == "External()"


def test_external_sends_an_authzid_of_255_octets_and_none_unless_told() -> None:
    for external, octets in ((sasl.External("a" * 255), b"a" * 255), (sasl.External(), b"")):
        step = external.begin(sasl.ClientContext()).start()
        assert isinstance(step, sasl.Respond)
        assert step.data == octets


@pytest.mark.parametrize(("length", "asked"), [(255, True), (256, False)])
def test_external_server_asks_for_an_authzid_of_255_octets_and_no_more(length: int, asked: bool) -> None:
    step = begin(authorize=authorize).start(b"a" * length)
    assert isinstance(step, sasl.Question if asked else sasl.Refused)


def test_external_server_refuses_an_authzid_with_a_nul() -> None:
    assert isinstance(begin(authorize=authorize).start(b"orders\0"), sasl.Refused)


@pytest.mark.parametrize("authzid", ["a\0b", "a" * 256, "\ud800"])
def test_external_refuses_an_authzid_that_cannot_be_sent(authzid: str) -> None:
    with pytest.raises(LocalProtocolError, match="authzid"):
        sasl.External(authzid)


@pytest.mark.parametrize("authzid", [b"", b"ada"])
def test_external_server_lets_in_whom_the_mapper_names(authzid: bytes) -> None:
    step = begin().start(authzid)
    assert isinstance(step, sasl.Verified)
    assert step.name == "ada"


def test_external_server_asks_for_a_response_where_there_is_none() -> None:
    exchange = begin()
    step = exchange.start(None)
    assert isinstance(step, sasl.Challenge)
    assert step.data == b""
    assert isinstance(exchange.response(b""), sasl.Verified)


@pytest.mark.parametrize(
    "exchange",
    [
        begin(identify=None),
        begin(certificate=None),
        begin({"subject": "CN="}),
        begin(identify=lambda _: ""),
        begin(identify=lambda _: True),
        begin(identify=lambda _: b"ada"),
    ],
)
def test_external_server_refuses_who_has_no_name_here(exchange: sasl.ServerExchange) -> None:
    assert isinstance(exchange.start(b""), sasl.Refused)


@pytest.mark.parametrize("data", [b"\xff", b"ada\0", b"a" * 256, b"orders"])
def test_row_14_external_server_refuses_a_malformed_or_another_authzid(data: bytes) -> None:
    assert isinstance(begin().start(data), sasl.Refused)


@pytest.mark.parametrize(("authzid", "verified"), [("orders", True), ("admin", False)])
def test_external_server_asks_who_may_act_as_another(authzid: str, verified: bool) -> None:
    exchange = begin(authorize=authorize)
    question = exchange.start(authzid.encode())
    assert isinstance(question, sasl.Question)
    assert question.about == f"EXTERNAL: may 'ada' act as {authzid!r}"
    step = exchange.answer(settle(question))
    assert isinstance(step, sasl.Verified if verified else sasl.Refused)
    assert not isinstance(step, sasl.Verified) or step.name == authzid


@pytest.mark.parametrize("answer", [None, 1, "yes", object()])
def test_external_server_takes_true_alone_for_a_yes(answer: object) -> None:
    exchange = begin(authorize=authorize)
    exchange.start(b"orders")
    assert isinstance(exchange.answer(answer), sasl.Refused)


def test_external_server_is_offered_only_where_a_certificate_was_verified() -> None:
    with_one, without = sasl.ServerContext(peer_certificate=CERTIFICATE), sasl.ServerContext()
    assert sasl.ExternalServer(identify).usable(with_one)
    assert not sasl.ExternalServer(identify).usable(without)
    assert not sasl.ExternalServer().usable(with_one)
    server = sasl.Server(mechanisms=[sasl.ExternalServer(identify)])
    assert [mechanism.name for mechanism in server.offer(True, context=with_one)] == ["EXTERNAL"]
    assert server.offer(True) == []


def test_external_server_keeps_the_certificate_until_its_layer_forgets() -> None:
    mechanism = sasl.ExternalServer(lambda _certificate: 1 / 0)  # type: ignore[arg-type,return-value]
    server = sasl.SaslServer([mechanism], context=sasl.ServerContext(peer_certificate=CERTIFICATE))
    client = sasl.SaslClient([sasl.External()])
    client.receive_data(server.data_to_send())
    server.receive_data(client.data_to_send())
    assert server.failed
    assert isinstance(server.error, ZeroDivisionError)
