"""rhea and us, both ways round: who dials, who sends, settled by the receiver or sent settled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp

from . import exchange
from .peers import PeerError

if TYPE_CHECKING:
    from .peers import Client

MODES = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])


@MODES
def test_rhea_receives_the_corpus_when_we_dial(rhea: Client, presettled: bool) -> None:
    exchange.we_dial_and_send(rhea, presettled)


@MODES
def test_rhea_sends_the_corpus_when_we_dial(rhea: Client, presettled: bool) -> None:
    exchange.we_dial_and_receive(rhea, presettled)


@MODES
def test_rhea_sends_the_corpus_when_we_listen(rhea: Client, presettled: bool) -> None:
    exchange.we_listen_and_receive(rhea, presettled)


@MODES
def test_rhea_receives_the_corpus_when_we_listen(rhea: Client, presettled: bool) -> None:
    exchange.we_listen_and_send(rhea, presettled)


def test_rhea_gets_in_by_a_token_that_xoauth2_carries(rhea: Client) -> None:
    asked: list[tuple[str, str]] = []

    async def verify(username: str, token: str) -> str | None:
        asked.append((username, token))
        return "ann" if token == "a.jwt.token" else None

    server = amqp.sasl.Server(mechanisms=[amqp.sasl.XOAuth2Server(verify)])
    ann = replace(
        rhea, run_flags=("--user", "ann@example.org", "--token", "a.jwt.token"), serve={"sasl": server}
    )
    exchange.we_listen_and_receive(ann, False, count=10)
    assert set(asked) == {("ann@example.org", "a.jwt.token")}
    other = replace(ann, run_flags=("--user", "ann@example.org", "--token", "another"))
    with pytest.raises(BaseException) as caught:
        exchange.we_listen_and_receive(other, False, count=10)
    assert caught.group_contains(PeerError)
    assert asked[-1] == ("ann@example.org", "another")
