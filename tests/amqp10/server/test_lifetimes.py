"""Dynamic nodes: their addresses, how long they live, and their properties (3.5.3, 3.5.9 to 3.5.13)."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.spec.messaging import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Source,
    Target,
)
from trio_amqp10.testing import open_container

DYNAMIC = Source(dynamic=True)


async def test_address_of_a_dynamic_node_says_who_had_it_made_and_cannot_be_guessed() -> None:
    async with open_container() as container:
        addresses: list[str] = []
        for name in ("reply/to me?", "\u00e9" * 100):
            async with (
                container.connect(container_id="till 7") as conn,
                conn.open_receiver(None, source=DYNAMIC, name=name) as receiver,
            ):
                assert receiver.address is not None
                addresses.append(receiver.address)
    shapes = [re.fullmatch(r"temporary/([0-9a-f-]{36})/till_7/(.+)", each) for each in addresses]
    assert [shape and shape[2] for shape in shapes] == ["reply_to_me_", "\u00e9" * 64]
    assert len({uuid.UUID(shape[1]) for shape in shapes if shape}) == 2


async def test_address_of_a_dynamic_target_says_who_had_it_made() -> None:
    target = Target(dynamic=True)
    async with (
        open_container() as container,
        container.connect(container_id="till 7") as conn,
        conn.open_sender(None, target=target, name="orders") as sender,
    ):
        assert re.fullmatch(r"temporary/[0-9a-f-]{36}/till_7/orders", str(sender.address))


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (DeleteOnClose(), [True, False, False]),
        (DeleteOnNoLinks(), [True, True, False]),
        (DeleteOnNoMessages(), [True, True, True]),
        (DeleteOnNoLinksOrMessages(), [True, True, True]),
        ("no policy at all", [True, False, False]),
    ],
)
async def test_dynamic_node_lives_as_long_as_its_lifetime_policy_says(policy: Any, kept: list[bool]) -> None:
    source = Source(dynamic=True, dynamic_node_properties={"lifetime-policy": policy})
    async with open_container() as container, two(container) as (one, other):
        seen: list[bool] = []

        async def look() -> None:
            await wait_all_tasks_blocked()
            seen.append(bool(container.nodes))

        maker = await one.open_receiver(None, source=source, credit=0).__aenter__()
        assert maker.address is not None
        sender = await other.open_sender(maker.address).__aenter__()
        await sender.send("x")
        await look()
        await maker.aclose()
        await look()
        if seen[-1]:
            await sender.aclose()
        await look()
        assert seen == kept
        if seen[-1]:
            async with other.open_receiver(maker.address) as receiver:
                await bodies(receiver, 1)
            await look()
            assert not seen[-1]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (DeleteOnClose(), False),
        (DeleteOnNoLinks(), True),
        (DeleteOnNoMessages(), False),
        (DeleteOnNoLinksOrMessages(), True),
    ],
)
async def test_dynamic_node_without_messages_stays_for_another_link_as_its_lifetime_policy_says(
    policy: Any, kept: bool
) -> None:
    source = Source(dynamic=True, dynamic_node_properties={"lifetime-policy": policy})
    async with open_container() as container, two(container) as (one, other):
        maker = await one.open_receiver(None, source=source, credit=0).__aenter__()
        sender = await other.open_sender(maker.address).__aenter__()
        await maker.aclose()
        await wait_all_tasks_blocked()
        assert bool(container.nodes) is kept
        if kept:
            await sender.aclose()
            await wait_all_tasks_blocked()
            assert not container.nodes


POLICIES = [DeleteOnClose(), DeleteOnNoLinks(), DeleteOnNoMessages(), DeleteOnNoLinksOrMessages()]


@pytest.mark.parametrize("policy", POLICIES)
async def test_dynamic_terminus_is_answered_with_the_properties_that_its_node_has(policy: Any) -> None:
    asked = {"lifetime-policy": policy, "supported-dist-modes": "copy", "x-colour": "red"}
    async with open_container() as container, container.connect() as conn:
        source = Source(dynamic=True, dynamic_node_properties=asked)
        target = Target(dynamic=True, dynamic_node_properties=asked)
        async with (
            conn.open_receiver(None, source=source) as receiver,
            conn.open_sender(None, target=target) as sender,
        ):
            for terminus in (receiver.remote.source, sender.remote.target):
                actual = dict(terminus.dynamic_node_properties)
                assert set(actual) == {"lifetime-policy", "supported-dist-modes"}
                assert type(actual["lifetime-policy"]) is type(policy)
                assert list(actual["supported-dist-modes"]) == ["move", "copy"]


async def test_dynamic_terminus_is_deleted_on_close_where_no_policy_is_asked_for() -> None:
    async with open_container() as container, container.connect() as conn:
        async with conn.open_receiver(None, source=DYNAMIC) as receiver:
            answer = receiver.remote.source
            assert isinstance(answer.dynamic_node_properties["lifetime-policy"], DeleteOnClose)
        async with conn.open_receiver("q") as receiver:
            assert receiver.remote.source.dynamic_node_properties is None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("settles", [True, False])
async def test_dynamic_node_with_a_message_under_lease_is_not_without_messages(
    policy: Any, settles: bool
) -> None:
    source = Source(dynamic=True, dynamic_node_properties={"lifetime-policy": policy})
    kept = isinstance(policy, (DeleteOnNoMessages, DeleteOnNoLinksOrMessages))
    async with open_container() as container, two(container) as (one, other):
        async with one.open_receiver(None, source=source) as maker:
            assert maker.address is not None
            await fill(other, maker.address, "x")
            delivery = await maker.receive()
            if settles:
                delivery.accept()
        await wait_all_tasks_blocked()  # a link that goes with its message unsettled gives it back
        assert bool(container.nodes) is (kept and not settles)
