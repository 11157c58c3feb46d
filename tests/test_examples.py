"""Every program of ``examples/`` is run, against a peer where it wants one, and is short."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import blocking
from trio_amqp10.testing import open_proxy, rabbitmq, running_container

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ELSEWHERE = {
    "celery_tasks": "kombu/test_celery.py",
    "spark_join": "spark/test_examples.py",
    "spark_pipeline": "spark/test_examples.py",
    "spark_rabbitmq_stream": "spark/test_examples.py",
    "spark_redrive": "spark/test_examples.py",
    "test_azure": "interop/test_azure.py",
    "test_event_hubs": "interop/test_azure.py",
    "test_rabbitmq": "interop/test_rabbitmq_client.py",
}
"""Examples that need more than these tests may ask for, and who runs them."""
LINES = 40
LONGER = {
    "consumer": 50,
    "asyncio_consumer": 50,
    "spark_join": 120,
    "spark_pipeline": 110,
    "spark_rabbitmq_stream": 120,
    "spark_redrive": 120,
}
"""A shutdown has several parts; Spark's own part takes room, and these make their data, too."""
LOCALHOST = "amqp://127.0.0.1:0"
AMQP10 = [sys.executable, "-m", "trio_amqp10"]
NEEDS_AN_ARGUMENT = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if re.search(r"usage: python \w+\.py [A-Z]", path.read_text())
)


def load(name: str) -> ModuleType:
    """An example as a module of its own, made anew."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def while_serving(
    serve: Callable[..., Awaitable[object]], use: Callable[[str], Awaitable[None]]
) -> None:
    """Run ``use(url)`` while ``serve`` listens."""
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            listeners: list[amqp.Listener] = await nursery.start(serve)
            await use(listeners[0].url)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_is_short_and_tested(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGER.get(path.stem, LINES)
    assert ("sys.argv[1]" in path.read_text()) == (
        path.stem in NEEDS_AN_ARGUMENT or path.stem == "spark_pipeline"
    )
    if path.stem in ELSEWHERE:
        assert path.name in (Path(__file__).parent / ELSEWHERE[path.stem]).read_text()
    else:
        assert f'load("{path.stem}")' in Path(__file__).read_text()


async def test_client_sends_and_receives(capsys: pytest.CaptureFixture[str]) -> None:
    await while_serving(partial(amqp.Container("peer").serve, LOCALHOST), load("client").main)
    assert capsys.readouterr().out.splitlines() == ["None {'id': 1, 'what': 'tea'}", "note as a gift"]


async def test_service_takes_orders_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    async def use(url: str) -> None:
        async with amqp.open_connection(url) as connection:
            async with connection.open_sender("orders") as sender:
                await sender.send("one tea, please")
                with pytest.raises(amqp.DeliveryRejectedError, match="an order is a string"):
                    await sender.send({"id": 1})
            with pytest.raises(amqp.LinkRefusedError, match="no node 'complaints'"):
                async with connection.open_sender("complaints"):
                    pass

    await while_serving(partial(load("service").main, LOCALHOST), use)
    assert capsys.readouterr().out == "order: one tea, please\n"


async def test_either_side_opens_links(capsys: pytest.CaptureFixture[str]) -> None:
    with trio.fail_after(20):
        await load("either_side").main()
    assert capsys.readouterr().out == "[21.5, 21.7, 21.4]\n"


async def test_container_has_four_kinds_of_nodes_and_ask_asks_it(capsys: pytest.CaptureFixture[str]) -> None:
    async def use(url: str) -> None:
        await load("ask").main(url)
        async with amqp.open_connection(url) as connection:
            async with connection.open_sender("audit") as sender:
                await sender.send("seen")
            async with connection.open_receiver("ticks") as receiver:
                ticks: list[Any] = []
                async for delivery in receiver:
                    delivery.accept()
                    ticks.append(delivery.message.body)
                assert ticks == [0, 1, 2]
            async with connection.open_sender("orders") as sender:
                await sender.send("kept")

    await while_serving(partial(load("container").main, LOCALHOST), use)
    prices, audit = capsys.readouterr().out.splitlines()
    assert eval(prices) == {"tea": 3.5, "coffee": 4.0}
    assert audit == "audit: seen"


async def test_workers_share_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    await while_serving(partial(amqp.Container("peer").serve, LOCALHOST), load("workers").main)
    lines = [line.split(": ") for line in capsys.readouterr().out.splitlines()]
    assert sorted(int(result) for _, result in lines) == [job**2 for job in range(30)]
    assert {name for name, _ in lines} == {"worker 0", "worker 1", "worker 2"}


async def test_upload_sends_a_file_block_by_block(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(bytes(range(256)) * 4096)
    with trio.fail_after(20):
        await load("upload").main(str(file))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert capsys.readouterr().out == f"large.bin {digest}\n"


async def test_rabbitmq_client_declares_publishes_and_consumes(capsys: pytest.CaptureFixture[str]) -> None:
    with rabbitmq() as url:
        await load("rabbitmq_client").main(url)
    assert capsys.readouterr().out.splitlines() == [
        "no queue is bound for black.coffee",
        "green.tea one cup",
    ]


async def test_tls_shows_each_side_to_the_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = await trio.run_process([*AMQP10, "certs", str(tmp_path)], capture_stdout=True)
    assert made.returncode == 0
    await load("tls").main(str(tmp_path))
    told = sorted(line.split()[:4] for line in capsys.readouterr().out.splitlines())
    assert told == [["the", "client", "is", "connected"], ["the", "service", "knows", "client"]]


async def test_reconnecting_goes_on_after_a_loss(capsys: pytest.CaptureFixture[str]) -> None:
    container = amqp.Container("peer")
    container.add_queue("numbers", max_length=1)  # so that the sender waits for the receiver of this test

    async def use(url: str) -> None:
        async with open_proxy(url) as proxy, trio.open_nursery() as nursery:
            nursery.start_soon(load("reconnecting").main, proxy.url, 4, 0)
            async with container.connect() as connection, connection.open_receiver("numbers") as receiver:
                numbers: set[Any] = set()
                while len(numbers) < 4:  # at least once
                    delivery = await receiver.receive()
                    if not numbers:
                        proxy.cut()
                    numbers.add(delivery.message.body)
                    delivery.accept()

    await while_serving(partial(container.serve, LOCALHOST), use)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("accepted")] == [
        f"accepted {number}" for number in range(4)
    ]
    assert {line.split()[0] for line in lines} >= {"lost", "restored"}


@pytest.mark.parametrize("name", NEEDS_AN_ARGUMENT)
def test_example_without_its_argument_says_what_it_wants(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(rf"usage: python {name}\.py (URL|FILE|FOLDER)\n", done.stderr)
    assert done.stdout == ""


def test_page_of_examples_names_each_of_them() -> None:
    named = set(re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text()))
    assert named == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.logs_errors
def test_container_tests_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)  # as pytest does for the folder of a test
    monkeypatch.delitem(sys.modules, "container", raising=False)
    module = load("test_container")
    module.test_price_is_that_of_the_menu()
    module.test_request_for_what_there_is_not_is_rejected()
    module.test_orders_are_kept_in_their_order()
    monkeypatch.delitem(sys.modules, "container")


def test_shop_tests_pass() -> None:
    module = load("test_shop")
    module.test_ship_orders_announces_each_shipment()


def test_scripted_tests_pass() -> None:
    load("test_scripted").test_order_does_not_take_a_broken_peer_for_a_refusal()


def test_network_tests_pass() -> None:
    load("test_network").test_deliver_survives_two_cuts()


def test_threads_tests_pass(amqp_url: str) -> None:
    module = load("test_threads")
    module.test_command_line_asks_a_function_of_ours()
    module.test_queue_keeps_what_another_process_sent(amqp_url)


CONSUMERS = pytest.mark.parametrize(
    "consumer", [load("consumer"), load("asyncio_consumer")], ids=["trio", "asyncio"]
)


def consume(consumer: Any, url: str) -> None:
    if consumer.__name__.endswith("asyncio_consumer"):
        asyncio.run(consumer.main(url))
    else:
        trio.run(consumer.main, url)


@CONSUMERS
@pytest.mark.parametrize("away", [False, True])
def test_consumer_ends_at_a_signal_also_while_the_broker_is_away(
    consumer: Any, away: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    container, accept = amqp.Container("broker"), consumer.handle

    async def handle(delivery: Any) -> None:
        signal.raise_signal(signal.SIGTERM)  # while this delivery is in work
        if away:
            broker.close()
            sleep = trio.sleep if isinstance(delivery, amqp.Delivery) else asyncio.sleep
            await sleep(20)  # as a call that waits for the broker
        await accept(delivery)

    monkeypatch.setattr(consumer, "handle", handle)
    with ExitStack() as broker:
        url = broker.enter_context(running_container(["orders"], container=container))
        with blocking.connect(url) as conn, conn.open_sender("orders") as sender:
            sender.send("tea")
        if away:
            monkeypatch.setattr(consumer, "PATIENCE", 0.1)
        consume(consumer, url)
    expected = ["some work was given up"] if away else ["tea", "all work is done"]
    assert capsys.readouterr().out.splitlines() == expected
    assert container.nodes["orders"].statistics()["messages"] == away


@CONSUMERS
def test_consumer_ends_that_has_not_reached_its_broker(
    consumer: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dial(*where: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return connect(*where, **options)

    module = consumer.aio if hasattr(consumer, "aio") else consumer.amqp
    name = "connect" if hasattr(consumer, "aio") else "open_connection"
    connect = getattr(module, name)
    monkeypatch.setattr(module, name, dial)
    monkeypatch.setattr(consumer, "PATIENCE", 0.1)
    consume(consumer, "amqp://127.0.0.1:1")
    assert capsys.readouterr().out == "some work was given up\n"
