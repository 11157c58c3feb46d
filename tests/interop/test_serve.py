"""``amqp10 serve`` as a broker between peers: they send to its queues, and receive from them."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from .corpus import corpus_digest
from .peers import CLIENTS, Client, Process

if TYPE_CHECKING:
    from collections.abc import Generator

COUNT = 1000


@contextmanager
def serve(*arguments: str) -> Generator[str, None, None]:
    """The command, until its block is left; gives its URL."""
    listen = ["serve", "--listen", "amqp://127.0.0.1:0", *arguments]
    server = Process([sys.executable, "-m", "trio_amqp10", *listen], {"PYTHONWARNINGS": "error"})
    try:
        yield server.read_until(b"listening ").decode().split()[1]
    except BaseException:
        server.end(signal.SIGKILL)
        raise
    _, said = server.end(signal.SIGTERM)
    assert server.child.returncode == 0, said


@pytest.mark.parametrize("presettled", [(), ("--presettled",)], ids=["unsettled", "presettled"])
@pytest.mark.parametrize("receiving", CLIENTS)
@pytest.mark.parametrize("sending", CLIENTS)
def test_serve_keeps_the_corpus_when_one_peer_sends_and_another_receives(
    sending: str, receiving: str, presettled: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    sender: Client = request.getfixturevalue(sending)
    receiver: Client = request.getfixturevalue(receiving)
    with serve("--queue", "orders") as url:
        sent = sender.run("send", url, "orders", COUNT, *presettled)
        got = receiver.run("receive", url, "orders", COUNT, *presettled)
    assert sent["outcomes"] == ({} if presettled else {"accepted": COUNT})
    assert got == {
        "received": COUNT,
        "settled": COUNT if presettled else 0,
        "digest": corpus_digest(1, COUNT),
    }


def test_serve_lets_a_peer_in_with_the_right_password_only(peer: Client) -> None:
    with serve("--user", "ada:enigma", "--allow-plaintext-password") as url:
        named = url.replace("amqp://", "amqp://ada:enigma@")
        assert peer.run("send", named, "q", 10)["outcomes"] == {"accepted": 10}
        with pytest.raises(AssertionError, match="ended with 1"):
            peer.run("send", url.replace("amqp://", "amqp://ada:wrong@"), "q", 10)
