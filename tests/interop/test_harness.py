"""The peers against each other, without us: when these fail, the fault is not in our library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .corpus import SMALL, corpus_digest
from .peers import CLIENTS, Capture, Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rabbitmq import Broker

COUNT = 1000
DIGEST = corpus_digest(1, COUNT)
PRESETTLED = pytest.mark.parametrize("flags", [(), ("--presettled",)], ids=["unsettled", "presettled"])


@PRESETTLED
@pytest.mark.parametrize("listening", CLIENTS)
def test_peers_agree_on_the_corpus_when_they_talk_to_each_other(
    listening: str, peer: Client, flags: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    other: Client = request.getfixturevalue(listening)
    with other.listen() as listener:
        sent = peer.run("send", listener.url, "q", COUNT, *flags)
        received = peer.run("receive", listener.url, "q", COUNT, *flags)
        generated = peer.run("receive", listener.url, f"generate-{COUNT}-7", COUNT, *flags)
    assert sent["sent"] == COUNT
    assert received["digest"] == sent["digest"] == listener.result["digests"]["q"] == DIGEST
    assert generated["digest"] == corpus_digest(7, COUNT)
    assert received["settled"] == listener.result["settled"]["q"] == (COUNT if flags else 0)


@PRESETTLED
def test_peers_agree_on_the_corpus_when_a_broker_is_between(
    broker: Broker, peer: Client, flags: tuple[str, ...]
) -> None:
    queue = broker.new_queue()
    sent = peer.run("send", broker.url, queue, COUNT, *flags)
    assert sent["outcomes"] == ({} if flags else {"accepted": COUNT})
    assert peer.run("receive", broker.url, queue, COUNT, *flags)["digest"] == DIGEST


def test_capture_sees_every_transfer_and_nothing_malformed(
    proton: Client, rhea: Client, capture: Callable[[int], Capture]
) -> None:
    with rhea.listen() as listener, capture(listener.port) as seen:
        proton.run("send", listener.url, "q", COUNT, seed=SMALL)
    assert seen.read("_ws.malformed") == []
    performatives = [word for line in seen.read("amqp", "amqp.performative") for word in line.split(",")]
    assert performatives.count("20") == COUNT  # 0x14, transfer
    assert {"16", "17", "18", "19", "21", "22", "24"} <= set(performatives)  # open to close, but for end


def test_client_fails_when_nobody_listens(peer: Client) -> None:
    with pytest.raises(AssertionError, match="ended with 1"):
        peer.run("send", "amqp://127.0.0.1:1", "q", 1)
