"""Each function of the kit takes several names, and refuses one text instead of using its letters."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.testing import event_hubs, open_container, rabbitmq, running_container, service_bus


async def enter(manager: Any) -> None:
    async with AsyncExitStack() as stack:
        if hasattr(manager, "__aenter__"):
            await stack.enter_async_context(manager)
        else:
            stack.enter_context(manager)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (open_container, "queues"),
        (running_container, "queues"),
        (rabbitmq, "queues"),
        (service_bus, "queues"),
        (service_bus, "topics"),
        (event_hubs, "hubs"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
async def test_one_text_is_refused_where_names_are_expected(function: Any, argument: str) -> None:
    with pytest.raises(amqp.LocalProtocolError, match=re.escape(f"{argument}='tea': expected several names")):
        await enter(function(**{argument: "tea"}))
    await enter(function(**{argument: ["tea", "milk"]}))
