"""``amqp10 emulate``: emulators as processes, with the files of configuration that other projects write."""

from __future__ import annotations

import copy
import json
import re
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator import EventHubs, ServiceBus
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.emulator_config import read_definitions, read_event_hubs, read_service_bus

from .conftest import done, failed, interrupt, misused, start

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

CONFIG: dict[str, Any] = {
    "UserConfig": {
        "Namespaces": [
            {
                "Name": "sbemulatorns",
                "Queues": [
                    {
                        "Name": "queue.1",
                        "Properties": {
                            "DeadLetteringOnMessageExpiration": False,
                            "DefaultMessageTimeToLive": "PT1H",
                            "DuplicateDetectionHistoryTimeWindow": "PT20S",
                            "ForwardDeadLetteredMessagesTo": "",
                            "ForwardTo": "",
                            "LockDuration": "PT1M",
                            "MaxDeliveryCount": 3,
                            "RequiresDuplicateDetection": True,
                            "RequiresSession": False,
                        },
                    },
                    {"Name": "first", "Properties": {"ForwardTo": "topic.1"}},
                ],
                "Topics": [
                    {
                        "Name": "topic.1",
                        "Properties": {
                            "DefaultMessageTimeToLive": "P10675199DT2H48M5.4775807S",
                            "DuplicateDetectionHistoryTimeWindow": "PT20S",
                            "RequiresDuplicateDetection": False,
                        },
                        "Subscriptions": [
                            {
                                "Name": "subscription.1",
                                "Properties": {"LockDuration": "PT30S", "MaxDeliveryCount": 3},
                                "Rules": [
                                    {
                                        "Name": "correlation",
                                        "Properties": {
                                            "FilterType": "Correlation",
                                            "CorrelationFilter": {
                                                "Label": "subject1",
                                                "Properties": {"prop1": "value1"},
                                            },
                                        },
                                    },
                                    {
                                        "Name": "sql",
                                        "Properties": {
                                            "FilterType": "Sql",
                                            "SqlFilter": {"SqlExpression": "sys.Label = 'oil'"},
                                            "Action": {"SqlExpression": "SET sys.To = 'Entity'"},
                                        },
                                    },
                                ],
                            },
                            {"Name": "all"},
                        ],
                    }
                ],
            }
        ],
        "Logging": {"Type": "File"},
    }
}


def written(folder: Path, content: Any) -> str:
    file = folder / "Config.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


@contextmanager
def emulating(*arguments: str) -> Generator[str]:
    process = start("emulate", *arguments, "--port", "0")
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
    finally:
        out, err = interrupt(process, signal.SIGINT)
        assert (out, err, process.returncode) == (b"", b"", 0)


def test_service_bus_serves_the_config_of_microsofts_emulator(tmp_path: Path) -> None:
    with emulating("service-bus", "--config", written(tmp_path, CONFIG), "--queue", "more") as text:
        found = re.fullmatch(
            r"Endpoint=sb://127\.0\.0\.1:(\d+);SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
            "UseDevelopmentEmulator=true;",
            text,
        )
        assert found is not None
        assert trio.run(exchanged, int(found[1])) == ["Entity", None]


async def exchanged(port: int) -> list[str | None]:
    async with amqp.open_connection(f"amqp://127.0.0.1:{port}") as conn:
        await conn.put_token(
            "sb://h/", sign_sas("sb://h/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", 2**31)
        )
        async with conn.open_sender("more") as sender:
            await sender.send("x")
        async with conn.open_sender("first") as sender:
            await sender.send(amqp.Message("tea", subject="oil"))
        found: list[str | None] = []
        for name in ("subscription.1", "all"):
            async with conn.open_receiver(f"topic.1/Subscriptions/{name}") as receiver:
                delivery = await receiver.receive()
                delivery.accept()
                found.append(delivery.message.to)
        return found


def test_service_bus_has_the_rules_of_the_config(tmp_path: Path) -> None:
    bus = ServiceBus()
    read_service_bus(written(tmp_path, CONFIG), bus)
    options = bus.entities["queue.1"].options
    assert (options.lock_duration, options.max_delivery_count, options.default_message_time_to_live) == (
        60,
        3,
        3600,
    )
    assert (options.requires_duplicate_detection, options.duplicate_detection_history_time_window) == (
        True,
        20,
    )
    assert (options.forward_to, bus.entities["first"].options.forward_to) == (None, "topic.1")


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    config = copy.deepcopy(CONFIG)
    place: Any = config
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return config


NAMESPACE = ["UserConfig", "Namespaces", 0]
QUEUE = [*NAMESPACE, "Queues", 0]
RULES = [*NAMESPACE, "Topics", 0, "Subscriptions", 0, "Rules"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", "is not JSON"),
        ("[]", "expected a JSON object"),
        ("[" * 100_000, "is not JSON"),
        ({}, "UserConfig: is missing"),
        ({"UserConfig": 5}, "UserConfig: expected a table"),
        (changed([*NAMESPACE, "Queus"], []), "Queus: unknown key; did you mean Queues?"),
        (changed([*NAMESPACE, "Queues"], {}), "UserConfig.Namespaces[0].Queues: expected an array"),
        (changed([*QUEUE], 5), "Queues[0]: expected a table"),
        (changed([*QUEUE, "Name"], ...), "Queues[0].Name: is missing"),
        (changed([*QUEUE, "Name"], 5), "Queues[0].Name: expected a string"),
        (changed([*QUEUE, "Name"], "FIRST"), "has this address, in another case"),
        (
            changed([*QUEUE, "Properties", "LockDuration"], "1 min"),
            "LockDuration: '1 min': expected a duration",
        ),
        (changed([*QUEUE, "Properties", "LockDuration"], "PT"), "expected a duration"),
        (changed([*QUEUE, "Properties", "LockDuration"], "PT0S"), "expected more than 0 seconds"),
        (
            changed([*QUEUE, "Properties", "MaxDeliveryCount"], "3"),
            "MaxDeliveryCount: expected a whole number",
        ),
        (changed([*QUEUE, "Properties", "MaxDeliveryCount"], 0), "expected at least 1"),
        (changed([*QUEUE, "Properties", "RequiresSession"], "no"), "RequiresSession: expected a boolean"),
        (changed([*QUEUE, "Properties", "LockDurations"], 1), "did you mean LockDuration?"),
        (
            changed([*QUEUE, "Properties", "ForwardTo"], "none"),
            "there is no queue or topic 'none' to forward to",
        ),
        (
            changed([*RULES, 0, "Properties", "FilterType"], "x"),
            "FilterType: 'x': expected Sql or Correlation",
        ),
        (changed([*RULES, 0, "Properties", "CorrelationFilter"], {}), "must compare at least one field"),
        (changed([*RULES, 0, "Properties", "CorrelationFilter", "Lable"], "x"), "did you mean Label?"),
        (changed([*RULES, 1, "Properties", "SqlFilter", "SqlExpression"], "a >"), "'a >'"),
        (changed([*RULES, 1, "Properties", "Action", "SqlExpression"], "SET"), "is not a statement"),
        (changed([*RULES, 1, "Name"], "correlation"), "the rule 'correlation' exists"),
    ],
)
def test_fault_of_a_config_is_named_by_its_place(config: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as wrong:
        read_service_bus(written(tmp_path, config), ServiceBus())
    assert said in str(wrong.value)
    assert wrong.value.code == 2


def hubs_of(**hub: Any) -> dict[str, Any]:
    entities = [{"Name": "eh1", "PartitionCount": "3", "ConsumerGroups": [{"Name": "cg1"}], **hub}]
    return {
        "UserConfig": {
            "NamespaceConfig": [{"Type": "EventHub", "Name": "ns", "Entities": entities}],
            "LoggingConfig": {},
        }
    }


def test_event_hubs_have_the_config(tmp_path: Path) -> None:
    hubs = EventHubs()
    read_event_hubs(written(tmp_path, hubs_of()), hubs)
    options = hubs.hubs["eh1"].options
    assert (options.partition_count, options.consumer_groups) == (3, ("cg1",))
    with emulating("event-hubs", "--config", written(tmp_path, hubs_of()), "--hub", "clicks=4") as text:
        assert text.startswith("Endpoint=sb://127.0.0.1:")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (hubs_of(PartitionCount="x"), "PartitionCount: 'x': expected a whole number from 1 to 1024"),
        (hubs_of(PartitionCount=0), "expected a whole number"),
        (hubs_of(PartitionCount=True), "expected a whole number"),
        (hubs_of(ConsumerGroups=[{"Name": "a"}, {"Name": "A"}]), "expected different names"),
        (hubs_of(ConsumerGroup=[]), "did you mean ConsumerGroups?"),
        ({"UserConfig": {"NamespaceConfig": 5}}, "NamespaceConfig: expected an array"),
    ],
)
def test_fault_of_a_config_of_hubs_is_named(config: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as wrong:
        read_event_hubs(written(tmp_path, config), EventHubs())
    assert said in str(wrong.value)


DEFINITIONS = {
    "rabbit_version": "4.0.0",
    "users": [{"name": "guest"}],
    "queues": [{"name": "orders", "vhost": "/shop", "durable": True, "arguments": {"x-max-length": 10}}],
    "exchanges": [{"name": "events", "vhost": "/", "type": "topic"}],
    "bindings": [
        {"source": "events", "destination": "orders", "destination_type": "queue", "routing_key": "a.*"},
        {"source": "events", "destination": "events", "destination_type": "exchange"},
    ],
}


def test_rabbitmq_serves_definitions(tmp_path: Path) -> None:
    left_out = read_definitions(written(tmp_path, DEFINITIONS), RabbitMQ())
    assert left_out == ["users", "bindings[1], to an exchange", "the virtual hosts /shop: there is only one"]
    with emulating("rabbitmq", "--queue", "orders") as url:
        assert url.startswith("amqp://guest:guest@127.0.0.1:")
        assert done("send", f"{url}//queues/orders", "--body", "tea", "--binary") == b"sent 1\n"
        old = url.replace("amqp:", "amqp091:")
        assert done("receive", old, "orders", "--until-empty") == b"tea\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"queues": 5}, "queues: expected an array"),
        ({"queues": [{"name": ""}]}, "queues[0]"),
        ({"queues": [{"name": "q", "arguments": {"x-max-length": "a"}}]}, "queues[0]"),
        ({"exchanges": [{"name": "e", "type": "x"}]}, "exchanges[0]"),
        ({"bindings": [{"source": "none", "destination": "q"}]}, "bindings[0]"),
        ({"bindings": [{"source": 5, "destination": "q"}]}, "bindings[0].source: expected a string"),
    ],
)
def test_fault_of_definitions_is_named(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as wrong:
        read_definitions(written(tmp_path, change), RabbitMQ())
    assert said in str(wrong.value)


@pytest.mark.parametrize("read", [read_service_bus, read_event_hubs, read_definitions])
def test_file_that_is_no_utf_8_is_refused(read: Callable[[str, Any], Any], tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_bytes(json.dumps(CONFIG).encode("utf-16"))
    with pytest.raises(CommandError, match="is not UTF-8"):
        read(str(file), None)


def test_commands_of_the_manual_start_emulators() -> None:
    folder = Path(__file__).resolve().parents[3] / "docs/how-to"
    page = (folder / "command-line.rst").read_text()
    commands = re.findall(r"^   \$ amqp10 emulate (.*)$", page, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        with emulating(*command.replace("emulator.json", str(folder / "emulator.json")).split()) as text:
            assert "127.0.0.1" in text


def test_command_line_of_emulators_is_checked(tmp_path: Path) -> None:
    assert "expected NAME or NAME,SUBSCRIPTION" in misused("emulate", "service-bus", "--topic", "a,,b")
    assert "1 to 1024 partitions" in misused("emulate", "event-hubs", "--hub", "a=0")
    assert "is a directory" in misused("emulate", "rabbitmq", "--config", str(tmp_path))
    twice = ("emulate", "service-bus", "--queue", "a", "--queue", "A", "--port", "0")
    assert "in another case" in failed(*twice, code=2)
