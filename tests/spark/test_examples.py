"""The examples for Spark run as a user runs them, each in its own process."""

from __future__ import annotations

import ast
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from tests.test_examples import EXAMPLES, load

from .desk import PATIENCE
from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.rabbitmq import Broker

    from .server import Server

MINUTES = timedelta(minutes=10)


def run(name: str, *args: str) -> list[str]:
    """Run an example; return its output."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "args", "usage"),
    [
        ("spark_join.py", ["amqp://127.0.0.1:1"], "[URL]"),
        ("spark_join.py", ["localhost"], "[URL]"),
        ("spark_join.py", ["amqp://localhost", "more"], "[URL]"),
        ("spark_redrive.py", ["amqp://127.0.0.1:1", "dead", "folder", "n = 1"], "[URL QUEUE FOLDER FILTER]"),
        ("spark_redrive.py", ["amqp://localhost", "dead"], "[URL QUEUE FOLDER FILTER]"),
        ("spark_rabbitmq_stream.py", [], "URL"),
        ("spark_rabbitmq_stream.py", ["amqp://127.0.0.1:1"], "URL"),
    ],
)
def test_wrong_argument_prints_what_is_wanted(name: str, args: list[str], usage: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"usage: python {name} {usage}"
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_pipeline_counts_every_request(java: None) -> None:
    runs_on, begins, *said, by_status, total = run("spark_pipeline.py", "3000")
    assert runs_on.startswith("Spark runs on Java ")
    assert begins == "the queue has 3,000 lines; Spark starts, and counts them"
    counts = ast.literal_eval(by_status.partition(": ")[2])
    bars = [line.split() for line in said if not line.startswith("counting: batch ")]
    assert sum(int(number) for _, _, number in bars) == sum(counts.values())
    assert all(len(bar) == -(-int(number) // 50) for _, bar, number in bars)
    assert total.startswith(f"{sum(counts.values())} of 3000 requests")
    assert 2 * 1000 < sum(counts.values()) < 3000  # two minutes, at twenty requests a second
    assert counts["200"] > 0.8 * sum(counts.values())


def test_join_knows_paid_orders_from_unpaid_ones(java: None) -> None:
    orders, payments = load("spark_join").morning(1000)
    ordered, paid = dict(orders), dict(payments)
    in_time = {number for number, at in paid.items() if at - ordered[number] <= MINUTES}
    watermark = min(max(ordered.values()), max(paid.values())) - timedelta(minutes=1)
    others = [number for number in ordered if number not in in_time]
    unpaid = [number for number in others if ordered[number] + MINUTES < watermark]
    runs_on, sent, *said = run("spark_join.py")
    assert runs_on.startswith("Spark runs on Java ")
    assert sent == f"1000 orders and {len(payments)} payments were sent"
    assert said == [
        f"paid within ten minutes: {len(in_time)}",
        f"not paid in time: {len(unpaid)}",
        f"too young to tell: {len(others) - len(unpaid)}",
        *[f"order {number} of {ordered[number]:%H:%M:%S} is unpaid" for number in unpaid[:3]],
    ]
    assert 600 < len(in_time) < 800
    assert len(unpaid) > 200


def test_redrive_sends_what_it_selects_to_where_it_died(java: None) -> None:
    runs_on, *said = run("spark_redrive.py")
    assert runs_on.startswith("Spark runs on Java ")
    assert said == [
        "dead: 40 messages",
        "30 messages were sent again",
        "orders: 15 messages",
        "parcels: 15 messages",
        "dead: 10 messages",
    ]


@lacks("selector")
def test_redrive_sends_the_same_octets_and_goes_on_in_its_folder(
    java: None, server: Server, tmp_path: Path
) -> None:
    def die(first: int, stop: int) -> None:
        server.put(
            "dead",
            [
                amqp.Message(
                    number,
                    message_id=number,
                    application_properties={"kind": "tea" if number % 2 else "coffee"},
                    annotations={"x-opt-deadletter-source": f"orders-{number % 3}"},
                )
                for number in range(first, stop)
            ],
        )

    server.put("dead", [amqp.Message("of nowhere", application_properties={"kind": "tea"})])
    for first in (0, 12):
        die(first, first + 12)
        *_, said = run("spark_redrive.py", server.url, "dead", str(tmp_path / "work"), "kind = 'tea'")
        assert said == "6 messages were sent again"
    for queue in range(3):
        back = server.take(f"orders-{queue}")
        assert [each.message_id for each in back] == [n for n in range(24) if n % 2 and n % 3 == queue]
        assert all(
            each.body == each.message_id and each.application_properties == {"kind": "tea"} for each in back
        )
    left = server.take("dead")
    assert [each.body for each in left] == ["of nowhere", *range(0, 24, 2)]


def test_stream_of_rabbitmq_is_read_once_and_sent_on(java: None, broker: Broker) -> None:
    queues = "[Name || {resource, _, queue, Name} <- rabbit_amqqueue:list_names()]"
    before = broker.evaluate(queues)
    runs_on, *said = run("spark_rabbitmq_stream.py", broker.url)
    assert runs_on.startswith("Spark runs on Java ")
    assert said == [
        "read from the stream: 500 clicks",
        "read from the stream: 100 clicks",
        "in Parquet: 600 clicks, numbers 0 to 599",
        "sent to the other stream: 240 clicks, the last of them:",
        "237 is click 593",
        "238 is click 595",
        "239 is click 598",
    ]
    assert broker.evaluate(queues) == before
