"""What RabbitMQ lacks is refused without loss, and each word of ``LACKS`` is used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.browse import browse
from trio_amqp10.spark.options import BrowseOptions
from trio_amqp10.spark.spool_receiver import SpoolReceiverError

from .broker import BrokerPeer
from .desk import Desk
from .peers import LACKS, lacks
from .test_sink_delivery import send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.rabbitmq import Broker


@pytest.fixture
def rabbitmq(broker: Broker) -> Iterator[BrokerPeer]:
    with BrokerPeer(broker) as running:
        yield running


def test_browsing_rabbitmq_is_refused_and_takes_nothing(rabbitmq: BrokerPeer) -> None:
    rabbitmq.put("q", [b"1", b"2"])
    options = BrowseOptions.parse({"url": rabbitmq.url, "address": rabbitmq.address("q")})
    with pytest.raises(LocalProtocolError, match="cannot be browsed"):
        list(browse(options))
    assert rabbitmq.held("q") == 2


@pytest.mark.logs_errors
def test_selecting_from_rabbitmq_is_refused_and_takes_nothing(rabbitmq: BrokerPeer, tmp_path: Path) -> None:
    rabbitmq.put("q", [b"1", b"2"])
    desk = Desk(rabbitmq, tmp_path)
    receiver, spool = desk.start(selector="n > 1")
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="does not apply the selector"):
        receiver.check()
    desk.stop()
    assert (spool.end, rabbitmq.held("q")) == (0, 2)


def test_transaction_at_rabbitmq_is_refused_and_sends_nothing(rabbitmq: BrokerPeer) -> None:
    with pytest.raises(amqp.AmqpError, match="Transactions not supported"):
        send(rabbitmq, 3, transactions="task", sendTimeout="5s")
    assert rabbitmq.held("out") == 0


@pytest.mark.logs_errors
def test_rabbitmq_that_keeps_no_links_is_refused_and_keeps_its_messages(
    rabbitmq: BrokerPeer, tmp_path: Path
) -> None:
    rabbitmq.put("q", [b"1", b"2"])
    desk = Desk(rabbitmq, tmp_path)
    receiver, spool = desk.start(dedup="link")
    receiver.wait_until(lambda: False)
    with pytest.raises(
        SpoolReceiverError, match=r"option 'dedup' is 'link', and the peer at .* does not keep links"
    ):
        receiver.check()
    desk.stop()
    assert (spool.end, rabbitmq.held("q")) == (0, 2)


def test_each_reason_is_some_tests() -> None:
    used = {
        word
        for path in Path(__file__).parent.glob("test_*.py")
        for word in re.findall(r'lacks\("(\w+)"\)', path.read_text())
    }
    assert used == {*LACKS}


def test_reason_that_is_none_is_refused() -> None:
    word = "no-reason"
    with pytest.raises(AssertionError, match="is not one of transactions, "):
        lacks(word)
