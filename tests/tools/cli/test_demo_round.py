"""The demo sends a message round through every protocol."""

from __future__ import annotations

from trio_amqp10.tools.cli.demo_round import RELAYS

from .conftest import (
    done,
)


def test_demo_sends_a_message_round_through_every_protocol() -> None:
    lines = done("demo", "--dialect", "all").decode().splitlines()
    told = {line.split()[0]: line for line in lines if "once around" in line}
    assert told.keys() == {"1.0", *RELAYS}
    for line in told.values():
        assert "durable, priority 7, {'colour': 'green'}" in line
        assert "not durable" not in line


def test_demo_shows_the_frames_of_every_protocol_when_asked() -> None:
    shown = done("demo", "--dialect", "all", "--frames").decode()
    for what in ("[0] Transfer(", "[1] basic.deliver(", "handle notify(", "[1] tx.commit()"):
        assert what in shown
    assert shown.count("[1] basic.deliver(") == 2  # of 0-9-1 and of 10.3
