"""The client's login: which mechanism it uses, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10 import amqp091
from trio_amqp10.amqp091.client.login import AmqPlain, mechanisms_for
from trio_amqp10.sasl import AuthenticationError, NoAcceptableMechanismError

from .broker import Peer
from .conftest import URL


def names(*args: Any, **options: Any) -> list[str]:
    return [each.name for each in mechanisms_for(*args, **options)]


def test_login_uses_what_the_transport_permits() -> None:
    assert names(None, None, secure=True, has_certificate=True) == ["EXTERNAL"]
    assert names(None, None, secure=True, has_certificate=False)[-2:] == ["PLAIN", "AMQPLAIN"]
    assert "PLAIN" not in names("a", "b", secure=False, has_certificate=False)
    assert "EXTERNAL" in names("a", "b", secure=True, has_certificate=True)
    assert repr(AmqPlain("a", "secret")) == "AmqPlain('a', ...)"


@pytest.mark.parametrize("says_why", [True, False])
async def test_connection_reports_a_refused_login(brokered: Any, says_why: bool) -> None:
    async with brokered() as broker:
        broker.says_why = says_why
        with pytest.raises(
            AuthenticationError, match="refused" if says_why else "probably user or password are wrong"
        ):
            await amqp091.open_connection("amqp091://guest:wrong@broker").__aenter__()


async def test_connection_takes_a_loss_during_the_login_for_a_loss(brokered: Any) -> None:
    async with brokered() as broker:
        peers = []

        def lose(stream: Any) -> Any:
            peer = Peer(broker, stream)
            peer.log_in = lambda _event, _now: peer.pump.cancel()  # type: ignore[method-assign]
            peer.pump.start(broker.nursery)
            peers.append(peer)
            return peer

        broker.serve = lose
        with pytest.raises(amqp091.ConnectionClosedError, match="lost"):
            await amqp091.open_connection(URL).__aenter__()


async def test_connection_logs_in_with_amqplain(brokered: Any) -> None:
    async with brokered() as broker, amqp091.open_connection(f"{URL}?auth_mechanism=amqplain"):
        assert broker.peers[0].answer.mechanism == "AMQPLAIN"
        assert broker.peers[0].answer.response == b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x06secret"


async def test_connection_refuses_a_server_without_a_mechanism_of_ours(brokered: Any) -> None:
    async with brokered() as broker:
        broker.mechanisms = b"GSSAPI"
        with pytest.raises(NoAcceptableMechanismError):
            await amqp091.open_connection(URL).__aenter__()
