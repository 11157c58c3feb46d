"""``/metrics``: what Prometheus reads, and that it costs little however many queues there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from starlette.applications import Starlette

from tests.longest_run import measured_runs
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container
from trio_amqp10.container.virtual_hosts import VirtualHosts
from trio_amqp10.http.access import IDENTITY
from trio_amqp10.http.metrics import NAMES, expose, routes
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from trio_amqp10.container.management import Management

OPENMETRICS = "application/openmetrics-text"


async def get(
    management: Management,
    *,
    queues: Iterable[str] = (),
    accept: str = OPENMETRICS,
    who: Identity | None = None,
) -> httpx.Response:
    """The answer for a reader with this management."""

    async def management_for(request: Request) -> Management:
        setattr(request.state, IDENTITY, who)
        return management

    app = Starlette(routes=list(routes(management_for, queues=tuple(queues))))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get("/metrics", headers={"accept": accept})


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All values of an answer, by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_openmetrics(text)
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    return values(text)[name, frozenset(labels.items())]


async def test_queues_have_values_of_their_own_where_a_pattern_says_so() -> None:
    container = Container()
    for number in range(1, 4):
        for _ in range(number):
            await container.send(f"orders-{number}", "tea")
    await container.send("other", "tea")
    answer = await get(container.management, queues=["orders-[12]", "none*"])
    assert answer.headers["content-type"].startswith(OPENMETRICS)
    text = answer.text
    assert value(text, "rabbitmq_queue_messages_ready", queue="orders-2", vhost="/") == 2
    assert value(text, "rabbitmq_queue_messages_ready") == 4  # orders-3 and other
    assert value(text, "rabbitmq_queue_messages_published_total", queue="orders-1", vhost="/") == 1
    assert value(text, "rabbitmq_global_messages_routed_total") == 7
    assert value(text, "rabbitmq_queues") == 4
    assert value(text, "amqp10_queues_added_up") == 2
    assert ("rabbitmq_queue_messages_published_total", frozenset()) not in values(text)


async def test_without_a_pattern_no_queue_has_a_name() -> None:
    container = Container()
    for number in range(50):
        await container.send(f"q-{number}", "tea")
    few = (await get(container.management)).text
    assert "queue=" not in few
    assert value(few, "rabbitmq_queue_messages") == 50


async def test_text_is_that_of_the_older_format_where_the_reader_asks_for_it() -> None:
    container = Container()
    await container.send("q", "tea")
    answer = await get(container.management, queues=["*"], accept="*/*")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {family.name: family for family in parse_text(answer.text)}
    [one, rest] = found["rabbitmq_queue_messages_ready"].samples
    assert (one.labels, one.value, rest.labels, rest.value) == ({"queue": "q", "vhost": "/"}, 1, {}, 0)
    assert not answer.text.endswith("# EOF\n")


async def test_all_names_are_known_and_all_known_names_come() -> None:
    container = Container(store=MemoryStore(), memory_limit=10**6)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send("tea")
        await container.management.get("q", outcome="reject")
        await container.management.check_store()
        text = (await get(container.management, queues=["q"])).text
    found = {sample.name for family in parse_openmetrics(text) for sample in family.samples}
    assert found <= NAMES
    assert NAMES - found <= {"amqp10_store_bytes", "amqp10_quota_refusals_total"}  # a file, and quotas


@pytest.mark.parametrize("count", [1, 24, 25, 26, 50, 51, 120])
@pytest.mark.parametrize("accept", [OPENMETRICS, "text/plain"])
async def test_text_in_pieces_is_that_of_the_library_in_one(count: int, accept: str) -> None:
    container = Container()
    for number in range(count):
        await container.send(f"q-{number}", "tea")
    encode, _ = choose_encoder(accept)
    survey = await container.management.survey(lambda _: True)
    text = (await expose(survey, "/", encode)).decode()
    parse: Any = parse_openmetrics if accept == OPENMETRICS else parse_text
    families = {family.name: family for family in parse(text)}
    assert len(families["rabbitmq_queue_messages"].samples) == count + 1
    assert text.count("# TYPE rabbitmq_queue_messages gauge\n") == 1
    heads = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(heads) == len(set(heads))


NAMES_OF_QUEUES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@given(st.lists(NAMES_OF_QUEUES, min_size=1, max_size=60, unique=True))
def test_any_name_comes_back_as_it_is(names: list[str]) -> None:
    async def read() -> str:
        container = Container(strict=True)
        for name in names:
            container.add_queue(name)
        survey = await container.management.survey(lambda _: True)
        return (await expose(survey, "/", choose_encoder(OPENMETRICS)[0])).decode()

    text = trio.run(read)
    found = [
        sample.labels["queue"]
        for family in parse_openmetrics(text)
        if family.name == "rabbitmq_queue_consumers"
        for sample in family.samples
        if sample.labels
    ]
    assert found == names


async def test_name_that_is_no_valid_text_spoils_no_other() -> None:
    container = Container(strict=True)
    container.add_queue("bad\udc80")
    container.add_queue("good")
    text = (await get(container.management, queues=["*"])).text
    assert value(text, "rabbitmq_queue_messages", queue="good", vhost="/") == 0
    assert value(text, "rabbitmq_queue_messages", queue="bad?", vhost="/") == 0


async def test_totals_only_grow_when_queues_come_and_go() -> None:
    container = Container()
    totals: list[float] = []
    for number in range(3):
        await container.send(f"q-{number}", "tea")
        container.remove_node(f"q-{number}")
        text = (await get(container.management)).text
        totals.append(value(text, "rabbitmq_global_messages_routed_total"))
    assert totals == [1, 2, 3]


@pytest.mark.parametrize("who", [None, Identity("ada", "PLAIN")])
async def test_reader_without_permission_gets_a_refusal_in_json(who: Identity | None) -> None:
    container = Container(authorise=lambda _: False)
    container.add_queue("secret")
    answer = await get(container.management.on_behalf_of(who), queues=["*"], who=who)
    assert answer.status_code == (401 if who is None else 403)
    assert ("www-authenticate" in answer.headers) == (who is None)
    assert answer.json()["error"] == "forbidden"
    assert "secret" not in answer.text


async def test_reader_with_permission_for_figures_alone_gets_no_names() -> None:
    container = Container(authorise=lambda access: access.address == "$management/container")
    container.add_queue("secret")
    answer = await get(container.management.on_behalf_of(Identity("ada", "PLAIN")), queues=["*"])
    assert answer.status_code == 200
    assert "secret" not in answer.text
    assert value(answer.text, "rabbitmq_queues") == 1


async def test_queues_have_the_name_of_their_virtual_host() -> None:
    container = Container()
    VirtualHosts({"shop": container})
    container.add_queue("q")
    text = (await get(container.management, queues=["*"])).text
    assert value(text, "rabbitmq_queue_messages", queue="q", vhost="shop") == 0


@pytest.mark.whole
async def test_ten_thousand_queues_cost_little_and_never_hold_the_loop(no_collector: None) -> None:
    container = Container(memory_limit=None)
    for number in range(10_000):
        container.add_queue(f"q-{number}")
    costs, longest = list[float](), list[float]()
    for _ in range(5):  # Work takes longer while other programs use the memory and its caches.
        with measured_runs() as runs:
            await trio.lowlevel.checkpoint()
            runs.reset()
            answer = await get(container.management, queues=["*"])
            costs.append(runs.spent)
            longest.append(runs.longest)
        if min(costs) < 0.2 and min(longest) < 0.002:
            break
    assert len(answer.content) < 1_000_000
    assert min(costs) < 0.2
    assert min(longest) < 0.002
