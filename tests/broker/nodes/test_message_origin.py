"""Whose message it is, for a receiver that wants none of its own (3.5.8)."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill
from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.testing import open_container

NO_LOCAL = {"no-local": Described(Symbol("apache.org:no-local-filter:list"), [])}


async def test_no_local_keeps_a_message_from_the_container_that_sent_it() -> None:
    source = Source(address="q", filter=NO_LOCAL)
    async with (
        open_container(["q"]) as container,
        container.connect(container_id="one") as one,
        container.connect(container_id="two") as two_,
        one.open_receiver("q", source=source) as receiver,
    ):
        await fill(one, "q", "mine")
        await fill(two_, "q", "theirs")
        async with one.open_sender(None) as anonymous:
            await anonymous.send(amqp.Message("mine again", to="q"))
        await container.send("q", "the service's")
        assert await bodies(receiver, 2) == ["theirs", "the service's"]
        async with two_.open_receiver("q", source=source) as other:
            assert await bodies(other, 2) == ["mine", "mine again"]


@pytest.mark.parametrize("name", ["c", '["c", "ada"]'])
async def test_no_local_keeps_nothing_that_another_user_sent_by_the_same_container_id(name: str) -> None:
    source = Source(address="q", filter=NO_LOCAL)
    users = sasl.Server(users={"ada": "a", "bob": "b"}, anonymous=True)
    async with (
        open_container(["q"]) as container,
        container.connect(container_id="c", users=users, sasl=sasl.Plain("ada", "a")) as ada,
        container.connect(container_id="c", users=users, sasl=sasl.Plain("bob", "b")) as bob,
        container.connect(container_id=name, users=users, sasl=sasl.Anonymous()) as stranger,
        ada.open_receiver("q", source=source) as receiver,
    ):
        await fill(ada, "q", "mine")
        await fill(bob, "q", "bob's")
        await fill(stranger, "q", "a stranger's")
        assert await bodies(receiver, 2) == ["bob's", "a stranger's"]
