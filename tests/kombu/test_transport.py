from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import time
from typing import Any

import kombu
import pytest
from amqp import exceptions as kinds
from kombu.exceptions import OperationalError

from trio_amqp10 import LocalProtocolError
from trio_amqp10.kombu import SecureTransport, Transport

from .peers import SECONDS, container_url, drained, task_queue

USERS = {"ann": "p@ss/word"}


def publish(connection: kombu.Connection, *bodies: Any) -> None:
    queue = task_queue()
    producer = connection.Producer(serializer="json")
    for body in bodies:
        producer.publish(body, exchange=queue.exchange, routing_key="tasks", declare=[queue], retry=True)


def refusal(url: str, **options: Any) -> Exception:
    with kombu.Connection(url, **options) as connection, pytest.raises(Exception) as raised:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_max=0)
    return raised.value


def test_user_and_password_of_the_url_are_used() -> None:
    with container_url(users=USERS) as url:
        with_login = url.replace("//", "//ann:p%40ss%2Fword@")
        with kombu.Connection(with_login) as connection:
            publish(connection, 1)


def test_wrong_password_is_refused_at_once() -> None:
    with container_url(users=USERS) as url:
        began = time.monotonic()
        found = refusal(url.replace("//", "//ann:wrong@"))
    assert type(found) is kinds.AccessRefused
    assert "wrong" not in str(found)
    assert time.monotonic() - began < SECONDS


def closed_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_port_without_a_listener_is_an_operational_error() -> None:
    found = refusal(f"amqp10://127.0.0.1:{closed_port()}")
    assert isinstance(found, OperationalError)
    assert "refused" in str(found)


def test_unknown_host_is_an_operational_error() -> None:
    assert isinstance(refusal("amqp10://no-such-host.invalid"), OperationalError)


def test_peer_of_another_protocol_is_an_operational_error() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                (
                    f"import socket; s = socket.socket(fileno={listening.fileno()})\n"
                    "while True:\n c, _ = s.accept(); c.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n')"
                ),
            ],
            pass_fds=[listening.fileno()],
        )
        try:
            found = refusal(f"amqp10://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            process.kill()
            process.wait()
    assert isinstance(found, OperationalError | kinds.ConnectionError)


@pytest.mark.parametrize("url", ["amqp10://127.0.0.1:port", "amqp11://127.0.0.1"])
def test_url_that_is_none_raises_before_anything_is_dialled(url: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        kombu.Connection(url).connect()


def test_unknown_option_of_the_connection_is_named() -> None:
    with container_url() as url:
        found = refusal(url, transport_options={"open_connection": {"idle": 3}})
    assert isinstance(found, TypeError)
    assert "idle" in str(found)


def test_unknown_option_of_tls_is_named() -> None:
    found = refusal("amqp10://127.0.0.1", ssl={"key": "x"})
    assert isinstance(found, LocalProtocolError)
    assert "keyfile" in str(found)


def test_tls_has_its_own_port_and_context() -> None:
    connection = kombu.Connection("amqp10s://host", ssl={"cert_reqs": ssl.CERT_NONE})
    assert isinstance(connection.transport, SecureTransport)
    assert connection.transport._url() == "amqps://host:5671"
    context = connection.transport._dial_options({})["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_virtual_host_of_the_url_is_that_of_rabbitmq() -> None:
    connection = kombu.Connection("amqp10://[::1]/shop")
    assert connection.transport._url() == "amqp://[::1]:5672"
    assert connection.transport._dial_options({})["hostname"] == "vhost:shop"


def test_heartbeat_is_the_time_after_which_a_silent_peer_is_gone() -> None:
    transport = kombu.Connection("amqp10://host", heartbeat=10).transport
    assert transport._dial_options({})["idle_timeout"] == 10.0
    assert transport._dial_options({"open_connection": {"idle_timeout": 3}})["idle_timeout"] == 3
    assert "idle_timeout" not in kombu.Connection("amqp10://host").transport._dial_options({})


def test_service_bus_is_known_by_its_host() -> None:
    transport = kombu.Connection("amqp10s://name:key@shop.servicebus.windows.net").transport
    assert transport._url() == "amqps://shop.servicebus.windows.net:5671"
    assert (transport.has_topics, transport.driver_type) == (False, "amqp10")
    assert kombu.Connection("amqp10://localhost").transport.has_topics


@pytest.mark.parametrize("environment", ["gevent", "eventlet"])
def test_green_threads_are_refused_by_name(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.kombu.transport.detect_environment", lambda: environment)
    with pytest.raises(RuntimeError, match=f"does not work with {environment}: use the pool prefork"):
        kombu.Connection("amqp10://127.0.0.1").connect()


def test_publishing_goes_on_after_a_restart_of_the_peer() -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        url = first.enter_context(container_url())
        port = url.rpartition(":")[2]
        connection = stack.enter_context(kombu.Connection(url))
        publish(connection, 1)
        first.close()
        serve = [sys.executable, "-m", "trio_amqp10", "serve", "--listen", f"amqp://127.0.0.1:{port}"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline().startswith("listening")
                publish(connection, 2)
                found: list[int] = []
                with connection.Consumer(
                    task_queue(), callbacks=[lambda body, message: (found.append(body), message.ack())]
                ):
                    drained(connection, lambda: found)
            finally:
                process.terminate()
        assert found == [2]


def test_consumer_is_told_of_a_loss() -> None:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(container_url())
        connection = kombu.Connection(url)
        publish(connection, 1)
        held: list[Any] = []
        consumer = connection.Consumer(task_queue(), on_message=held.append)
        consumer.consume()
        drained(connection, lambda: held)
        stack.close()
        with pytest.raises(Transport.recoverable_connection_errors) as raised:
            connection.drain_events(timeout=SECONDS)
        assert not isinstance(raised.value, TimeoutError)
        assert not connection.connected
        with pytest.raises(Transport.recoverable_connection_errors):
            held[0].ack()
        connection.release()


def test_events_end_in_time() -> None:
    with container_url() as url, kombu.Connection(url) as connection:
        connection.connect()
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0.05)
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0)


class Hub:
    """An event loop that polls descriptors, as much of it as a transport sees."""

    def __init__(self) -> None:
        self.readers: dict[int, Any] = {}

    def add_reader(self, fd: int, call: Any, *arguments: Any) -> None:
        self.readers[fd] = (call, arguments)

    def remove_reader(self, fd: int) -> None:
        del self.readers[fd]

    def poll(self) -> None:
        import select

        ready, _, _ = select.select(list(self.readers), [], [], SECONDS)
        assert ready, "no descriptor is readable"
        for fd in ready:
            call, arguments = self.readers[fd]
            call(*arguments)


def test_event_loop_gets_all_messages() -> None:
    hub = Hub()
    with container_url() as url, kombu.Connection(url) as connection:
        publish(connection, *range(200))
        found: list[int] = []
        with connection.Consumer(
            task_queue(), callbacks=[lambda body, message: (found.append(body), message.ack())]
        ):
            connection.register_with_event_loop(hub)
            while len(found) < 200:
                hub.poll()
            connection.transport.unregister_from_event_loop(connection.connection, hub)
    assert found == list(range(200))
    assert hub.readers == {}


def test_event_loop_raises_a_loss() -> None:
    hub = Hub()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(container_url())
        connection = kombu.Connection(url)
        connection.connect()
        connection.register_with_event_loop(hub)
        stack.close()
        with pytest.raises(kinds.ConnectionForced):
            hub.poll()
        connection.release()


async def publish_in_a_loop(connection: kombu.Connection) -> None:
    publish(connection, 1)


def test_task_of_asyncio_may_publish() -> None:
    with container_url() as url, kombu.Connection(url) as connection:
        asyncio.run(publish_in_a_loop(connection))
        assert task_queue()(connection.default_channel).get(no_ack=True).payload == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, as workers have
def test_child_process_opens_a_connection_of_its_own() -> None:
    with container_url() as url, kombu.Connection(url) as connection:
        publish(connection, "parent")
        child = os.fork()
        if not child:
            code = 1
            try:
                connection.release()  # as pools do after a fork
                with kombu.Connection(url) as own:
                    publish(own, "child")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        publish(connection, "parent again")
        queue = task_queue()(connection.default_channel)
        assert [queue.get(no_ack=True).payload for _ in range(3)] == ["parent", "child", "parent again"]


def test_program_may_end_without_closing() -> None:
    program = (
        "import sys, kombu, trio_amqp10.kombu\n"
        "conn = kombu.Connection(sys.argv[1], transport_options={'confirm_publish': False})\n"
        "queue = kombu.Queue('tasks', kombu.Exchange('tasks'), 'tasks')\n"
        "producer = conn.Producer(serializer='json')\n"
        "for n in range(300): producer.publish(n, exchange='tasks', routing_key='tasks', declare=[queue])\n"
    )
    with container_url() as url, kombu.Connection(url) as connection:
        subprocess.run([sys.executable, "-c", program, url], check=True, timeout=30)
        queue = task_queue()(connection.default_channel)
        assert [queue.get(no_ack=True).payload for _ in range(300)] == list(range(300))


def test_pool_of_connections() -> None:
    with container_url() as url:
        pool = kombu.Connection(url).Pool(limit=2)
        with pool.acquire() as one, pool.acquire() as two:
            for connection in (one, two):
                publish(connection, 1)
            with pytest.raises(pool.LimitExceeded):
                pool.acquire(block=False)
        pool.force_close_all()


def test_what_celery_asks_a_transport() -> None:
    connection = kombu.Connection("amqp10://localhost")
    assert connection.supports_exchange_type("fanout")
    assert connection.transport.supports_ev
    assert not connection.transport.supports_heartbeats
    assert connection.transport.driver_version()
    assert not connection.connected
    assert "amqp10" in connection.as_uri()
