"""azure-eventhub as a client of ``EventHubs``, which it takes for its development emulator; one JSON line.

A program of its own. Every connection begins with a token at ``$cbs``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import threading
import time
from typing import Any, Self

from azure.eventhub import (
    CheckpointStore,
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
)
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore
from azure.eventhub.exceptions import AuthenticationError, ConnectError
from azure_namespace import dialling

HUB = "clicks"
PATIENCE = 20.0


def connecting(options: argparse.Namespace, *, key: str | None = None) -> dict[str, Any]:
    """Return the arguments of a client."""
    text, more = dialling(options, key=key)
    return {"conn_str": text, "eventhub_name": HUB, "retry_total": 0, **more}


def producer(options: argparse.Namespace, **more: Any) -> EventHubProducerClient:
    return EventHubProducerClient.from_connection_string(**connecting(options, **more))


class Reader:
    """Receives in a thread: ``with Reader(options, ...) as reader: reader.until(3)``."""

    def __init__(
        self,
        options: argparse.Namespace,
        *,
        store: CheckpointStore | None = None,
        checkpointing: bool = False,
        group: str = "$Default",
        **receiving: Any,
    ) -> None:
        self.client = EventHubConsumerClient.from_connection_string(
            consumer_group=group,
            checkpoint_store=store,
            load_balancing_interval=0.5,
            **connecting(options),
        )
        self.got: list[Any] = []
        self.events: list[Any] = []
        self.errors: list[Any] = []
        self.partitions: set[str] = set()
        self.metrics: Any = None
        self._checkpointing = checkpointing
        self._thread = threading.Thread(target=self._run, kwargs=receiving)

    def _run(self, **receiving: Any) -> None:
        self.client.receive(
            on_event=self._on_event,
            on_error=self._on_error,
            on_partition_initialize=lambda context: self.partitions.add(context.partition_id),
            on_partition_close=lambda context, _: self.partitions.discard(context.partition_id),
            max_wait_time=0.2,
            **receiving,
        )

    def _on_event(self, context: Any, event: Any) -> None:
        if event is None:
            return
        if self._checkpointing:
            context.update_checkpoint(event)
        self.events.append(event)
        self.metrics = context.last_enqueued_event_properties
        self.got.append(event.body_as_str())

    def _on_error(self, context: Any, error: Exception) -> None:
        self.errors.append(error)

    def until(self, done: Any) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > end:
                raise TimeoutError(f"{self.got} {self.partitions} {self.errors}")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._thread.join()


def send(options: argparse.Namespace) -> dict[str, Any]:
    """Ask for properties, send a batch, to a partition, with a key; what one may not do."""
    said: dict[str, Any] = {}
    with producer(options) as client:
        properties = client.get_eventhub_properties()
        age = datetime.datetime.now(datetime.UTC) - properties["created_at"]
        said["hub"] = [properties["eventhub_name"], properties["partition_ids"], age.total_seconds() < 600]
        said["empty"] = _partition(client, "0")
        batch = client.create_batch()
        for number in range(3):
            event = EventData(f"batched {number}")
            event.properties = {"number": number}
            event.message_id = str(number)
            batch.add(event)
        client.send_batch(batch)
        client.send_batch([EventData("to 1")], partition_id="1")
        client.send_event(EventData("single to 1"), partition_id="1")
        client.send_batch([EventData("keyed"), EventData("keyed too")], partition_key="ada")
        client.send_event(EventData("keyed as well"), partition_key="ada")
        said["partitions"] = [_partition(client, number) for number in ("0", "1", "2")]
    try:
        with producer(options, key="d3Jvbmc=") as client:
            client.send_event(EventData("never"))
    except AuthenticationError as refusal:
        said["wrong key"] = type(refusal).__name__
    return said


def _partition(client: EventHubProducerClient, number: str) -> list[Any]:
    told = client.get_partition_properties(number)
    return [
        told["beginning_sequence_number"],
        told["last_enqueued_sequence_number"],
        int(told["last_enqueued_offset"]) >= told["last_enqueued_sequence_number"],
        told["is_empty"],
    ]


def read(options: argparse.Namespace) -> dict[str, Any]:
    """Begin at the beginning, behind and at a number, an offset and a time, and at the end; in two groups."""
    said: dict[str, Any] = {}
    with producer(options) as client:
        for number in range(4):
            client.send_event(EventData(f"{number}"), partition_id="0")
            time.sleep(0.005)  # times of arrival are milliseconds: no two events have the same
        told = client.get_partition_properties("0")
    with Reader(
        options, partition_id="0", starting_position="-1", track_last_enqueued_event_properties=True
    ) as reader:
        reader.until(lambda: len(reader.got) == 4)
        second, third = reader.events[1:3]
        said["from the beginning"] = reader.got
        said["numbers"] = [each.sequence_number for each in reader.events]
        said["metrics"] = [
            reader.metrics["sequence_number"] == told["last_enqueued_sequence_number"],
            reader.metrics["offset"] == told["last_enqueued_offset"],
            reader.metrics["enqueued_time"] == told["last_enqueued_time_utc"],
        ]
    just_before = third.enqueued_time - datetime.timedelta(milliseconds=1)
    for name, position, inclusive, count in (
        ("behind a number", second.sequence_number, False, 2),
        ("at a number", second.sequence_number, True, 3),
        ("behind an offset", second.offset, False, 2),
        ("behind a time", just_before, False, 2),
    ):
        with Reader(
            options,
            partition_id="0",
            starting_position=position,
            starting_position_inclusive=inclusive,
            group="audit",
        ) as reader:
            reader.until(lambda reader=reader, count=count: len(reader.got) == count)
            said[name] = reader.got
    with Reader(options, partition_id="0", starting_position="@latest") as reader:
        with producer(options) as client:
            reader.until(lambda: client.send_event(EventData("new"), partition_id="0") or reader.got)
        said["from the end"] = sorted(set(reader.got))
    if options.cafile:
        return said  # a client on uamqp tries again and again
    with Reader(options, partition_id="0", starting_position=1000) as reader:
        reader.until(lambda: reader.errors)
        said["behind the end"] = [
            isinstance(reader.errors[0], ConnectError),
            "argument-error" in str(reader.errors[0]),
        ]
    return said


def balance(options: argparse.Namespace) -> dict[str, Any]:
    """Two consumers share the partitions of a hub; a third goes on where they were."""
    store = InMemoryCheckpointStore()
    receiving: dict[str, Any] = {"store": store, "checkpointing": True, "starting_position": "-1"}
    with producer(options) as client:
        for number in range(40):
            client.send_event(EventData(f"{number}"), partition_id=str(number % 4))
    with Reader(options, **receiving) as one:
        one.until(lambda: len(one.got) == 40)
        with Reader(options, **receiving) as two:
            two.until(lambda: len(one.partitions) == len(two.partitions) == 2)
            with producer(options) as client:
                for number in range(40, 60):
                    client.send_event(EventData(f"{number}"), partition_id=str(number % 4))
            one.until(lambda: len(set(one.got) | set(two.got)) == 60)
            shared = sorted(one.partitions | two.partitions)
            fair = min(len(one.got) - 40, len(two.got))
    with producer(options) as client:
        client.send_event(EventData("last"), partition_id="3")
    with Reader(options, **receiving) as three:
        three.until(lambda: three.got)
        return {"shared": shared, "each": fair >= 10, "third": three.got}


def take_over(options: argparse.Namespace) -> dict[str, Any]:
    """The owner of a higher level takes a partition from one of a lower, and keeps it."""
    said: dict[str, Any] = {}
    with producer(options) as client:
        client.send_event(EventData("tea"), partition_id="0")
    receiving: dict[str, Any] = {"partition_id": "0", "starting_position": "-1"}
    with Reader(options, owner_level=1, **receiving) as one:
        one.until(lambda: one.got)
        with Reader(options, owner_level=2, **receiving) as two:
            two.until(lambda: two.got)
            one.until(lambda: one.errors)
            said["first"] = [type(one.errors[0]).__name__, "stolen" in str(one.errors[0]).lower()]
            with Reader(options, owner_level=1, **receiving) as three:
                three.until(lambda: three.errors)
                said["lower"] = "stolen" in str(three.errors[0]).lower()
            with Reader(options, **receiving) as four:
                four.until(lambda: four.errors)
                said["none"] = "stolen" in str(four.errors[0]).lower()
            said["second"] = [two.got, two.errors]
    return said


MODES = {"send": send, "read": read, "balance": balance, "take-over": take_over}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--cafile")
    options = parser.parse_args()
    print(json.dumps(MODES[options.mode](options)))


if __name__ == "__main__":
    main()
