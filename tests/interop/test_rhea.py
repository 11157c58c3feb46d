"""rhea and us, both ways round: who dials, who sends, settled by the receiver or sent settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import exchange

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
