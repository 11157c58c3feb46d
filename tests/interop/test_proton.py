"""Qpid Proton and us, both ways round: who dials, who sends, settled by the receiver or sent settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import exchange

if TYPE_CHECKING:
    from .peers import Client

MODES = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])


@MODES
def test_proton_receives_the_corpus_when_we_dial(proton: Client, presettled: bool) -> None:
    exchange.we_dial_and_send(proton, presettled)


@MODES
def test_proton_sends_the_corpus_when_we_dial(proton: Client, presettled: bool) -> None:
    exchange.we_dial_and_receive(proton, presettled)


@MODES
def test_proton_sends_the_corpus_when_we_listen(proton: Client, presettled: bool) -> None:
    exchange.we_listen_and_receive(proton, presettled)


@MODES
def test_proton_receives_the_corpus_when_we_listen(proton: Client, presettled: bool) -> None:
    exchange.we_listen_and_send(proton, presettled)
