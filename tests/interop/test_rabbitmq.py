"""RabbitMQ 4 (AMQP 1.0 natively) and 3.10 (the old plugin), with us as their client."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, believing

from .corpus import corpus_digest, text_lines
from .ours import receive_from, send_to, within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .peers import Client
    from .rabbitmq import Broker

COUNT = 1000
LINES = 12_000
MODES = pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])


@MODES
def test_broker_gives_back_the_corpus_when_we_send_and_receive(broker: Broker, presettled: bool) -> None:
    queue = broker.new_queue()
    outcomes = within(send_to, broker.url, queue, COUNT, presettled)
    assert outcomes == ({} if presettled else {"accepted": COUNT})
    got = within(receive_from, broker.url, queue, COUNT, presettled)
    settled = COUNT if presettled else 0
    assert got == {"received": COUNT, "settled": settled, "digest": corpus_digest(1, COUNT)}


def test_broker_carries_the_corpus_when_a_peer_is_at_the_other_end(broker: Broker, peer: Client) -> None:
    there, back = broker.new_queue(), broker.new_queue()
    within(send_to, broker.url, there, COUNT, False)
    assert peer.run("receive", broker.url, there, COUNT)["digest"] == corpus_digest(1, COUNT)
    peer.run("send", broker.url, back, COUNT, seed=2)
    assert within(receive_from, broker.url, back, COUNT, False)["digest"] == corpus_digest(2, COUNT)


async def _use_a_bad_address(url: str, good: str, bad: str) -> None:
    async with amqp.open_connection(url) as connection:
        for turn in range(20):
            with pytest.raises(amqp.LinkRefusedError):
                async with connection.open_receiver(bad):
                    pytest.fail("there is no such queue")
            async with connection.open_sender(good) as sender:  # the connection is good still
                await sender.send(turn)
            async with connection.open_receiver(good) as receiver:
                delivery = await receiver.receive()
                assert delivery.message.body == turn
                delivery.accept()


def test_rabbitmq4_refuses_an_unknown_queue_and_goes_on(rabbitmq4: Broker) -> None:
    """It ends the whole session over a bad address: the next link gets a new one.

    And on another channel: for a moment a begin on the old one would never be answered.
    """
    within(_use_a_bad_address, rabbitmq4.url, rabbitmq4.new_queue(), "/queues/no-such-queue")


async def _log_in(url: str) -> None:
    async with amqp.open_connection(url):
        pytest.fail("the password was wrong")


def test_broker_refuses_a_wrong_password(broker: Broker) -> None:
    with pytest.raises(amqp.SecurityError):
        within(_log_in, broker.url.replace("guest:guest", "guest:wrong"))


WAYS: dict[str, Callable[[], amqp.sasl.ClientMechanism]] = {
    "PLAIN": lambda: amqp.sasl.Plain("guest", "guest"),
    "ANONYMOUS": amqp.sasl.Anonymous,
    "EXTERNAL": amqp.sasl.External,
}


def certificate(name: str = "ann", *, by: str = "clients") -> str:
    return str(authority(by).issue(common_name=name).file)


@pytest.mark.parametrize("mechanism", WAYS)
def test_rabbitmq4_gives_back_the_corpus_over_tls(rabbitmq4: Broker, mechanism: str) -> None:
    queue = rabbitmq4.new_queue()
    options: dict[str, Any] = {"cafile": str(authority().cafile), "sasl": WAYS[mechanism]()}
    if mechanism == "EXTERNAL":
        options["certfile"] = certificate()
    assert within(partial(send_to, rabbitmq4.tls_url, queue, 10, False, **options)) == {"accepted": 10}
    got = within(partial(receive_from, rabbitmq4.tls_url, queue, 10, False, **options))
    assert got == {"received": 10, "settled": 0, "digest": corpus_digest(1, 10)}


async def _dial(url: str, **options: Any) -> None:
    async with amqp.open_connection(url, **options):
        pytest.fail("nobody should have been let in")


def test_rabbitmq4_over_tls_refuses_and_is_refused(rabbitmq4: Broker) -> None:
    ours: dict[str, Any] = {"cafile": str(authority().cafile)}
    plain, external = amqp.sasl.Plain("guest", "wrong"), amqp.sasl.External()
    cases: list[tuple[Any, dict[str, Any]]] = [
        (amqp.SecurityError, ours | {"sasl": plain}),
        (amqp.SecurityError, ours | {"sasl": external, "certfile": certificate("nobody")}),
        (
            (amqp.SecurityError, amqp.ConnectionClosedError),
            ours | {"sasl": external, "certfile": certificate(by="foreign")},
        ),
        (amqp.SecurityError, {"sasl": plain, "ssl_context": believing("foreign")}),
    ]
    for error, options in cases:
        with pytest.raises(error):
            within(partial(_dial, rabbitmq4.tls_url, **options))
    with pytest.raises(amqp.SecurityError, match="not valid for"):
        within(partial(_dial, rabbitmq4.tls_url, **ours, sasl=plain, server_hostname="other.example"))


def test_command_line_carries_a_text_file_through_rabbitmq4_in_order(
    rabbitmq4: Broker, tmp_path: Path
) -> None:
    lines = text_lines(LINES)
    assert len(set(lines)) == LINES
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in lines))
    where = rabbitmq4.url + "/" + rabbitmq4.new_queue()
    command = [sys.executable, "-m", "trio_amqp10"]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    sent = subprocess.run(
        [*command, "send", where, "--file", str(text)],
        env=environment, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (sent.returncode, sent.stdout) == (0, f"sent {LINES}\n".encode()), sent.stderr
    received = subprocess.run(
        [*command, "receive", where, "--count", str(LINES), "--timeout", "30"],
        env=environment, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert received.returncode == 0, received.stderr
    assert received.stdout == text.read_bytes()
