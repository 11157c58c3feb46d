"""The HTTP API beside that of a live RabbitMQ 4: the same requests, and answers of the same shape; and the tools of both.

What RabbitMQ has and this API has not is in ``LEFT_OUT``, with the reason.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

import pika
import pytest

from trio_amqp10.testing.rabbitmq_emulator.threads import rabbitmq as emulated

from . import rabbitmq
from .conftest import need
from .peers import PEERS

if TYPE_CHECKING:
    from collections.abc import Iterator

ERLANG = r"reductions|garbage_collection|erlang_\w+|memory|gc_\w+|context_switches|run_queue|processors|proc_\w+|\w+_ram_tx_count|mnesia_\w+|io_\w+|msg_store_\w+|queue_index_\w+|ra_open_file_metrics|metrics_gc_queue_length|pending_raft_commands|net_ticktime|os_pid|fd_\w+|sockets_\w+|uptime|applications|config_files|db_dir|log_files|contexts|enabled_plugins|mem_calculation_strategy|disk_\w+|socket_opts\.\w+"
LEFT_OUT = {
    rf"(.*\.)?({ERLANG})(\..*)?": "only Erlang has it, or RabbitMQ's own store",
    r".*_details": "rates: nothing is sampled, as with rates_mode none at RabbitMQ",
    r"(.*\.)?message_stats(\..*)?": "figures of the broker's own channels",
    r"(.*\.)?churn_rates|(.*\.)?(connection|channel|queue)_(created|closed|declared|deleted)": "not counted",
    r"(.*\.)?(peer_port|host|port|ssl|ssl_\w+|peer_cert_\w+|auth_mechanism|channel_max|frame_max|timeout)": "not part of the management of a container",
    r"(.*\.)?client_properties\.\w+": "only the name of the client is kept",
    r"(.*\.)?(message_bytes|messages)_persistent": "not counted",
    r"(.*\.)?(consumer_timeout|publishes|deliveries)": "there is none",
    r"(.*\.)?user_who_performed_action": "not kept for exchanges",
    r"(.*\.)?(recv|send)_oct": "counted for each connection, not for a virtual host",
    r"(.*\.)?arguments\.x-queue-type": "RabbitMQ adds it to each queue",
    r"cluster_state\.\w+@localhost|.*cluster_state\..*": "the name of the node",
    r"(.*\.)?(description|limits)": "of definitions of a virtual host",
    r"head_message_timestamp|hashing_algorithm": "null where it is not known",
}
"""What an answer of RabbitMQ has, as a pattern for its place, and why this API does not have it."""


class Api(NamedTuple):
    """An HTTP API, and the broker behind it."""

    amqp: str
    http: str

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{self.http}/api/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, octets = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, octets = error.code, error.read()
        return status, json.loads(octets) if octets else None


@pytest.fixture(scope="module")
def theirs() -> Iterator[Api]:
    need("rabbitmq4")
    broker = rabbitmq.start(4, peers=PEERS, management=True)
    try:
        yield Api(broker.url, broker.management_url)
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def ours() -> Iterator[Api]:
    with emulated(http=True) as (url, http):
        yield Api(url, http.replace("guest:guest@", ""))


def furnish(api: Api) -> pika.BlockingConnection:
    """The same things in each: a queue with messages, one with a consumer, an exchange, bindings."""
    connection = pika.BlockingConnection(pika.URLParameters(api.amqp))
    channel = connection.channel()
    channel.queue_declare("one", durable=True, arguments={"x-max-length": 10})
    channel.queue_declare("two", durable=True)
    channel.exchange_declare("e", "topic", durable=True)
    channel.exchange_declare("f", "fanout", durable=True)
    channel.queue_bind("one", "e", "a.#", arguments={"n": 1})
    channel.exchange_bind("f", "e", "k")
    channel.basic_qos(prefetch_count=5)
    channel.confirm_delivery()
    channel.basic_consume("two", lambda *_: None, consumer_tag="tag")
    properties = pika.BasicProperties(
        content_type="text/plain", headers={"h": 1}, delivery_mode=2, timestamp=5
    )
    for _ in range(3):
        channel.basic_publish("e", "a.b", b"hello", properties)
    channel.basic_publish("", "two", b"\xff")
    connection.process_data_events(2)
    return connection


READ = [
    "overview",
    "whoami",
    "cluster-name",
    "nodes",
    "vhosts",
    "vhosts/%2F",
    "users",
    "users/guest",
    "permissions",
    "permissions/%2F/guest",
    "users/guest/permissions",
    "connections",
    "vhosts/%2F/connections",
    "connections/username/guest",
    "channels",
    "consumers",
    "consumers/%2F",
    "exchanges",
    "exchanges/%2F",
    "exchanges/%2F/e",
    "exchanges/%2F/amq.default",
    "exchanges/%2F/e/bindings/source",
    "exchanges/%2F/f/bindings/destination",
    "queues",
    "queues/%2F",
    "queues/detailed",
    "queues/%2F/one",
    "queues/%2F/two",
    "queues/%2F/one/bindings",
    "bindings",
    "bindings/%2F",
    "bindings/%2F/e/e/q/one",
    "bindings/%2F/e/e/e/f",
    "policies",
    "operator-policies",
    "parameters",
    "topic-permissions",
    "vhost-limits",
    "user-limits",
    "auth",
    "version",
    "definitions",
    "definitions/%2F",
    "health/checks/alarms",
    "health/checks/local-alarms",
    "health/checks/virtual-hosts",
    "health/checks/node-is-quorum-critical",
    "health/checks/port-listener/1",
    "health/checks/protocol-listener/amqp091",
    "health/checks/protocol-listener/stomp",
    "aliveness-test/%2F",
    "queues?page=1&page_size=2",
    "queues?page=1&page_size=1&name=^two$&use_regex=true",
    "queues?sort=name&sort_reverse=true&columns=name,messages",
    "queues?page=0",
    "queues?page=x",
    "queues?page=1&page_size=1000",
    "queues?page=1&name=(&use_regex=true",
    "queues/%2F/one?columns=name",
    "nope",
    "queues/%2F/none",
    "queues/none/one",
    "exchanges/%2F/none",
    "connections/none",
    "channels/none",
    "users/none",
    "vhosts/none",
    "nodes/none",
]
GET = {"count": 2, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 50_000}
SENT = {
    "properties": {"delivery_mode": 2, "headers": {"a": 1}},
    "routing_key": "k",
    "payload": "hi",
    "payload_encoding": "string",
}
CHANGES: list[tuple[str, str, Any]] = [
    ("PUT", "queues/%2F/n", {}),
    ("PUT", "queues/%2F/n", {"durable": False}),
    ("PUT", "queues/%2F/n", {"durable": True}),
    ("PUT", "queues/%2F/bad", {"arguments": {"x-max-length": -1}}),
    ("PUT", "queues/%2F/bad", {"durable": "maybe"}),
    ("PUT", "queues/%2F/bad", []),
    ("PUT", "queues/none/n", {}),
    ("PUT", "queues/%2F/amq.n", {}),
    ("PUT", "exchanges/%2F/x", {"type": "direct"}),
    ("PUT", "exchanges/%2F/x", {"type": "direct"}),
    ("PUT", "exchanges/%2F/x", {"type": "fanout"}),
    ("PUT", "exchanges/%2F/bad", {"type": "weird"}),
    ("POST", "bindings/%2F/e/x/q/n", {"routing_key": "k"}),
    ("POST", "bindings/%2F/e/x/q/n", {}),
    ("POST", "bindings/%2F/e/none/q/n", {}),
    ("POST", "bindings/%2F/e/x/q/none", {}),
    ("GET", "bindings/%2F/e/x/q/n", None),
    ("GET", "bindings/%2F/e/x/q/n/k", None),
    ("GET", "bindings/%2F/e/x/q/n/~", None),
    ("GET", "bindings/%2F/e/x/q/n/zzz", None),
    ("POST", "exchanges/%2F/x/publish", SENT),
    ("POST", "exchanges/%2F/x/publish", {**SENT, "routing_key": "none"}),
    ("POST", "exchanges/%2F/none/publish", SENT),
    ("POST", "exchanges/%2F/amq.default/publish", {**SENT, "routing_key": "n"}),
    ("POST", "exchanges/%2F/x/publish", {**SENT, "payload_encoding": "weird"}),
    ("POST", "exchanges/%2F/x/publish", {**SENT, "payload": "///", "payload_encoding": "base64"}),
    ("POST", "exchanges/%2F/x/publish", {**SENT, "properties": {"priority": "x"}}),
    ("POST", "exchanges/%2F/x/publish", {}),
    ("POST", "queues/%2F/n/get", GET),
    ("POST", "queues/%2F/n/get", {**GET, "encoding": "base64"}),
    ("POST", "queues/%2F/n/get", {**GET, "encoding": "weird"}),
    ("POST", "queues/%2F/n/get", {"count": 1}),
    ("POST", "queues/%2F/n/get", {**GET, "count": "x"}),
    ("POST", "queues/%2F/none/get", GET),
    ("DELETE", "queues/%2F/n?if-empty=true", None),
    ("POST", "queues/%2F/n/get", {**GET, "ackmode": "ack_requeue_false"}),
    ("POST", "queues/%2F/n/get", GET),
    ("DELETE", "queues/%2F/two?if-unused=true", None),
    ("DELETE", "queues/%2F/n/contents", None),
    ("DELETE", "queues/%2F/none/contents", None),
    ("DELETE", "bindings/%2F/e/x/q/n/k", None),
    ("DELETE", "bindings/%2F/e/x/q/n/zzz", None),
    ("DELETE", "exchanges/%2F/e?if-unused=true", None),
    ("DELETE", "exchanges/%2F/amq.direct", None),
    ("DELETE", "exchanges/%2F/amq.default", None),
    ("DELETE", "exchanges/%2F/x", None),
    ("DELETE", "exchanges/%2F/x", None),
    ("DELETE", "queues/%2F/n", None),
    ("DELETE", "queues/%2F/n", None),
    (
        "POST",
        "definitions",
        {"queues": [{"name": "d", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]},
    ),
    ("POST", "definitions", []),
    (
        "POST",
        "definitions/%2F",
        {"queues": [{"name": "d", "durable": True, "auto_delete": False, "arguments": {}}]},
    ),
    ("DELETE", "queues/%2F/d", None),
    ("DELETE", "connections/none", None),
]


def kind(value: Any) -> str:
    return (
        "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
    )


def differences(their: Any, our: Any, place: str = "") -> Iterator[str]:
    """Where our answer lacks a key, or has a value of another type; elements of lists are compared by their first."""
    if isinstance(their, dict) and isinstance(our, dict):
        for name, value in their.items():
            inner = f"{place}.{name}".removeprefix(".")
            if any(re.fullmatch(pattern, inner) for pattern in LEFT_OUT):
                continue
            if name not in our:
                yield f"{inner} is missing"
            else:
                yield from differences(value, our[name], inner)
    elif isinstance(their, list) and isinstance(our, list):
        if their and our:
            yield from differences(their[0], our[0], place)
    elif kind(their) != kind(our) and place not in ("reason", ""):  # RabbitMQ has lists of words there, too
        yield f"{place} is {kind(our)}: expected {kind(their)}"


def test_answers_have_the_statuses_and_shapes_of_rabbitmq(theirs: Api, ours: Api) -> None:
    connections = [furnish(api) for api in (theirs, ours)]
    wrong: list[str] = []
    try:
        for method, path, body in [*(("GET", path, None) for path in READ), *CHANGES]:
            (their_status, their), (our_status, our) = (api.ask(method, path, body) for api in (theirs, ours))
            if their_status != our_status:
                wrong.append(f"{method} {path} {body}: {our_status} {our}, expected {their_status} {their}")
            elif their is not None:
                wrong += [f"{method} {path}: {each}" for each in differences(their, our)]
    finally:
        for connection in connections:
            connection.close()
    assert wrong == []


# -- their tools ----------------------------------------------------------------------------


@pytest.fixture(params=["theirs", "ours"])
def api(request: pytest.FixtureRequest) -> Api:
    """Each in turn."""
    found: Api = request.getfixturevalue(request.param)
    return found


def test_rabbitmqadmin_does_its_work(api: Api) -> None:
    need("rabbitmq4")
    program = PEERS / "rabbitmq4/usr/bin/rabbitmqadmin"  # its own tool, in Python
    port = api.http.rpartition(":")[2]

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, program, "-H", "127.0.0.1", "-P", port, "-f", "raw_json", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    run("declare", "queue", "name=tool", "durable=true")
    run("declare", "exchange", "name=tools", "type=topic")
    run("declare", "binding", "source=tools", "destination=tool", "routing_key=a.*")
    run("publish", "exchange=tools", "routing_key=a.b", "payload=hello")
    run("publish", "routing_key=tool", "payload=again")
    got = json.loads(run("get", "queue=tool", "count=5", "ackmode=ack_requeue_false"))
    assert [(each["payload"], each["exchange"]) for each in got] == [("hello", "tools"), ("again", "")]
    for subject in (
        "queues",
        "exchanges",
        "bindings",
        "connections",
        "channels",
        "consumers",
        "nodes",
        "users",
        "vhosts",
        "permissions",
    ):
        assert isinstance(json.loads(run("list", subject)), list)
    assert json.loads(run("show", "overview"))
    run("purge", "queue", "name=tool")
    run(
        "delete",
        "binding",
        "source=tools",
        "destination=tool",
        "destination_type=queue",
        "properties_key=a.%2A",
    )
    run("delete", "exchange", "name=tools")
    run("delete", "queue", "name=tool")


PROGRAM = """
import sys
import pyrabbit2
import amqpstorm.management

place = sys.argv[1]
client = pyrabbit2.Client(place.removeprefix("http://"), "guest", "guest")
assert client.is_alive()
client.create_queue("/", "clients", durable=True)
client.create_exchange("/", "clients", "direct")
client.create_binding("/", "clients", "clients", "k")
assert client.publish("/", "clients", "k", "hello")
[message] = client.get_messages("/", "clients", requeue=False)
assert message["payload"] == "hello", message
assert "clients" in [each["name"] for each in client.get_queues()]
assert client.get_overview()["object_totals"]
assert client.get_connections() is not None
client.purge_queue("/", "clients")

other = amqpstorm.management.ManagementApi(place, "guest", "guest")
assert other.aliveness_test("/")["status"] == "ok"
assert other.whoami()["name"] == "guest"
other.queue.declare("storm", virtual_host="/", durable=True)
other.queue.bind(queue="storm", exchange="amq.direct", routing_key="s", virtual_host="/", arguments=None)
other.basic.publish("body", routing_key="storm", exchange="amq.default", virtual_host="/")
[message] = other.basic.get("storm", virtual_host="/", requeue=False)
assert message.body == "body", message.body
assert "storm" in [each["name"] for each in other.queue.list()]
assert other.queue.get("storm")["name"] == "storm"
assert other.channel.list() is not None and other.connection.list() is not None
assert other.overview()["object_totals"]
other.queue.unbind(queue="storm", exchange="amq.direct", routing_key="s", virtual_host="/")
other.queue.purge("storm")
other.queue.delete("storm")
other.exchange.declare("stormy", exchange_type="fanout")
assert other.exchange.get("stormy")["type"] == "fanout"
other.exchange.delete("stormy")
client.delete_exchange("/", "clients")
client.delete_queue("/", "clients")
print("done")
"""


def test_clients_of_pypi_do_their_work(api: Api) -> None:
    need("http-clients")
    done = subprocess.run(
        [PEERS / "http-clients/bin/python", "-c", PROGRAM, api.http],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
