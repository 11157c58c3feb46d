"""azure-servicebus against a container with ``$cbs``; it and azure-eventhub, both before they left uamqp, and both for JavaScript, against our emulators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from trio_amqp10.testing.azure_emulator import EntityOptions, EventHubs, HubOptions, ServiceBus

from .conftest import need
from .ours import within
from .peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KEYS = {"root": ("cm9vdA==", "send receive create transact"), "sender": ("c2VuZA==", "send")}

REFUSED = {"wrong key": "ServiceBusAuthenticationError", "sends only": "ServiceBusAuthorizationError"}
SETTLED: dict[str, Any] = {
    "peeked": ["complete", "abandon", "dead", "defer", "renew"],
    "received": [
        [name, 1 + i, 0] for i, name in enumerate(["complete", "abandon", "dead", "defer", "renew"])
    ],
    "renewed": True,
    "deferred": ["defer", "DEFERRED"],
    "again": ["abandon", 1],
    "unknown number": "MessageNotFoundError",
    "dead": ["dead", "bad", "sour"],
    "scheduled": ["later", True],
    "lock lost": ["MessageLockLostError", "MessageLockLostError", 2],
    "one": ["oil"],
    "two": ["oil"],
    "session": ["y", "state"],
    "session renewed": True,
    "of y": ["for y", "y"],
    "locked session": "SessionCannotBeLockedError",
    "next session": ["x", ["for x"]],
    "sessions": ["y"],
    "no session": "OperationTimeoutError",
}


@pytest.fixture
def azure() -> Callable[..., Any]:
    """Runs the peer's program against a stand-in; gives what it said, and the container."""
    need("azure")
    return lambda mode, name, *more: within(_run, mode, name, more)


@pytest.fixture
def bus() -> ServiceBus:
    """A namespace for the peer's program."""
    bus = ServiceBus(keys=KEYS)
    bus.add_queue("orders")
    bus.add_queue("short", EntityOptions(lock_duration=1))
    bus.add_queue("sessions", EntityOptions(requires_session=True))
    bus.add_topic("prices")
    bus.add_subscription("prices", "one")
    bus.add_subscription("prices", "two")
    return bus


async def _run(
    mode: str,
    name: str,
    more: tuple[str, ...],
    container: amqp.Container | None = None,
    program: str = "azure_peer.py",
    peer: str = "azure",
) -> tuple[Any, amqp.Container]:
    if container is None:
        container = amqp.Container("namespace")
        container.add_cbs(amqp.SasKeys(KEYS), azure=True)
        container.add_queue("orders")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0")
        if peer == "uamqp":
            serve = partial(container.serve, "amqpwss://127.0.0.1:0", ssl_context=serving())
            more = (*more, "--cafile", str(authority().cafile))
        listeners: list[amqp.Listener] = await nursery.start(serve)
        arguments = ["--port", str(listeners[0].port), "--name", name, "--key", KEYS[name][0], *more]
        done = await trio.run_process(
            [str(PEERS / peer / "bin/python"), str(Path(__file__).with_name(program)), mode, *arguments],
            capture_stdout=True,
        )
        nursery.cancel_scope.cancel()
    return json.loads(done.stdout), container


def test_azure_servicebus_sends_and_receives_once_its_token_is_taken(azure: Callable[..., Any]) -> None:
    said, container = azure("exchange", "root", "--count", "25")
    assert said == {"got": [f"message {number}" for number in range(25)]}
    assert len(container.nodes["orders"]) == 0


def test_azure_servicebus_is_told_what_it_may_not(azure: Callable[..., Any]) -> None:
    said, _ = azure("refused", "sender")
    assert said == REFUSED


def test_azure_servicebus_settles_peeks_schedules_and_has_sessions(bus: ServiceBus) -> None:
    need("azure")
    said, _ = within(_run, "settle", "root", (), bus.container)
    assert said == SETTLED
    assert {name: len(entity) for name, entity in bus.entities.items() if len(entity)} == {}


def test_azure_servicebus_on_uamqp_does_the_same(bus: ServiceBus) -> None:
    """Over a WebSocket with TLS. It does not hear that a lock was lost, and lists no sessions."""
    need("uamqp")
    said, _ = within(_run, "settle", "root", (), bus.container, "azure_peer.py", "uamqp")
    others = {name: SETTLED[name] for name in SETTLED if name not in ("sessions", "no session")}
    assert said == {**others, "lock lost": ["ServiceBusError", 2]}
    assert {name: len(entity) for name, entity in bus.entities.items() if len(entity)} == {}


def test_azure_servicebus_on_uamqp_is_told_what_it_may_not(bus: ServiceBus) -> None:
    need("uamqp")
    said, _ = within(_run, "refused", "sender", (), bus.container, "azure_peer.py", "uamqp")
    assert said == REFUSED


def ask_hubs(mode: str, partitions: int, peer: str = "azure") -> Any:
    """What azure-eventhub says of ``EventHubs``."""
    need(peer)
    hubs = EventHubs(keys=KEYS)
    hubs.add_hub("clicks", HubOptions(partition_count=partitions, consumer_groups=("audit",)))
    said, _ = within(_run, mode, "root", (), hubs.container, "hubs_peer.py", peer)
    return said


@pytest.mark.parametrize("peer", ["azure", "uamqp"])
def test_azure_eventhub_sends_batches_to_partitions_and_by_key(peer: str) -> None:
    said = ask_hubs("send", 3, peer)
    # What has no key goes round: the batch is the first. The key "ada" leads to partition 0 here.
    assert said == {
        "hub": ["clicks", ["0", "1", "2"], True],
        "empty": [0, -1, True, True],
        "partitions": [[0, 5, True, False], [0, 1, True, False], [0, -1, True, True]],
        "wrong key": "AuthenticationError",
    }


@pytest.mark.parametrize("peer", ["azure", "uamqp"])
def test_azure_eventhub_receives_from_where_it_says(peer: str) -> None:
    said = ask_hubs("read", 2, peer)
    if peer == "uamqp":
        said["behind the end"] = [True, True]  # it tries that again and again
    assert said == {
        "from the beginning": ["0", "1", "2", "3"],
        "numbers": [0, 1, 2, 3],
        "metrics": [True, True, True],
        "behind a number": ["2", "3"],
        "at a number": ["1", "2", "3"],
        "behind an offset": ["2", "3"],
        "behind a time": ["2", "3"],
        "from the end": ["new"],
        "behind the end": [True, True],
    }


def test_azure_eventhub_balances_load_and_goes_on_from_checkpoints() -> None:
    assert ask_hubs("balance", 4) == {"shared": ["0", "1", "2", "3"], "each": True, "third": ["last"]}


def test_azure_eventhub_takes_partitions_over_by_owner_level() -> None:
    assert ask_hubs("take-over", 1) == {
        "first": ["ConnectionLostError", True],
        "lower": True,
        "none": True,
        "second": [["tea"], []],
    }


async def _run_node(mode: str, name: str, container: amqp.Container) -> Any:
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        program = str(Path(__file__).with_name("azure_peer.js"))
        done = await trio.run_process(
            ["node", program, mode, str(listeners[0].port), name, KEYS[name][0]],
            capture_stdout=True,
            env={**os.environ, "NODE_PATH": str(PEERS / "azure-js/node_modules")},
        )
        nursery.cancel_scope.cancel()
    return json.loads(done.stdout)


def test_azure_service_bus_for_javascript_settles_peeks_schedules_and_has_sessions(bus: ServiceBus) -> None:
    need("azure-js")
    names = ["complete", "abandon", "dead", "defer", "renew"]
    assert within(_run_node, "settle", "root", bus.container) == {
        "peeked": names,
        "received": [[name, 1 + i, 0, 1] for i, name in enumerate(names)],
        "renewed": True,
        "deferred": ["defer", "deferred"],
        "again": ["abandon", 1],
        "settledTwice": "Error",
        "dead": ["dead", "bad", "sour"],
        "scheduled": ["later", True],
        "none": 0,
        "subscribed": [["oil", {"price": 3}], ["tea", [1, "two"]]],
        "session": ["y", "state"],
        "sessionRenewed": True,
        "ofY": ["for y", "y"],
        "lockedSession": "SessionCannotBeLocked",
        "nextSession": ["x", "for x"],
    }
    left = {name: len(entity) for name, entity in bus.entities.items() if len(entity)}
    assert left == {"prices/Subscriptions/two": 2}


def test_azure_service_bus_for_javascript_makes_rules(bus: ServiceBus) -> None:
    need("azure-js")
    said = within(_run_node, "rules", "root", bus.container)
    [by_subject, dear] = said.pop("after")
    assert by_subject[0] == "by-subject"
    assert {key: value for key, value in by_subject[1].items() if value is not None} == {
        "subject": "tea",
        "applicationProperties": {"fresh": True},
    }
    assert dear == ["dear", "price > 100 AND sys.Label = 'oil'"]
    assert said == {
        "before": [["$Default", "1=1"]],
        "sameName": "MessagingEntityAlreadyExists",
        "noRule": "ServiceCommunicationProblem",
        "badRule": "GeneralError",
        "got": ["dear oil", "fresh tea"],
    }


def test_azure_service_bus_for_javascript_is_told_what_it_may_not(bus: ServiceBus) -> None:
    need("azure-js")
    said = within(_run_node, "refused", "sender", bus.container)
    assert said == {"wrong key": "UnauthorizedAccess", "sends only": "UnauthorizedAccess"}


def test_azure_event_hubs_for_javascript_sends_and_reads_partitions() -> None:
    need("azure-js")
    hubs = EventHubs(keys=KEYS)
    hubs.add_hub("clicks", HubOptions(partition_count=2))
    assert within(_run_node, "hubs", "root", hubs.container) == {
        "hub": ["clicks", ["0", "1"]],
        "partition": ["0", 3, False],
        "all": [[{"a": 1}, "by key", "zero 0", "zero 1", "zero 2"], ["0", "1"]],
        "behind": [["by key", "zero 2"], ["0"]],
        "wrongKey": "UnauthorizedError",
    }


@pytest.mark.parametrize("example", ["test_azure.py", "test_event_hubs.py"])
def test_example_of_a_test_with_clients_of_azure_passes(example: str) -> None:
    need("azure")
    [packages] = (PEERS / "azure/lib").glob("python3*/site-packages")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            str(EXAMPLES / example),
        ],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
