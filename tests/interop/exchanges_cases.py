"""The cases of the comparison of two 0-9-1 servers: each is a short conversation on connections of its own.

A case waits for what it expects (``listen``, ``answer``), so that a slow machine changes nothing; ``quiet`` shows that
nothing more comes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tests.amqp091 import naive

from .exchanges_client import HEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exchanges_client import Party, Scene

CASES: Final[dict[str, Callable[[Scene], None]]] = {}


def case(function: Callable[[Scene], None]) -> Callable[[Scene], None]:
    CASES[function.__name__] = function
    return function


def text(value: str) -> tuple[str, bytes]:
    return "S", value.encode()


def number(value: int) -> tuple[str, int]:
    return "I", value


def letters(headers: dict[str, tuple[str, object]]) -> list[tuple[str, tuple[str, object]]]:
    return list(headers.items())


QUORUM: Final = {"x-queue-type": text("quorum")}


# -- the handshake and the connection -------------------------------------------------------


@case
def header_of_another_version(s: Scene) -> None:
    p = s.dial(opened=False)
    p.write(b"AMQP\x00\x00\x09\x02")
    p.listen(2)


@case
def header_of_1_1_0_8(s: Scene) -> None:
    p = s.dial(opened=False)
    p.write(b"AMQP\x01\x01\x08\x00")
    p.listen(2)


@case
def header_of_0_9(s: Scene) -> None:
    p = s.dial(opened=False)
    p.write(b"AMQP\x01\x01\x00\x09")
    name, _ = p._next(5)
    s.note(0, name)


@case
def start_is_of_0_9(s: Scene) -> None:
    p = s.dial(opened=False)
    p.write(HEADER)
    name, found = p._next(5)
    s.note(0, (name, found["version_major"], found["version_minor"], found["locales"]))
    s.note(0, sorted(dict(dict(found["server_properties"])[b"capabilities"][1])))


def _started(s: Scene) -> Party:
    p = s.dial(opened=False)
    p.write(HEADER)
    assert p._next(5)[0] == "connection.start"
    return p


def _start_ok(
    p: Party, response: str = "\0guest\0guest", mechanism: str = "PLAIN", close: bool = True
) -> None:
    capabilities = [("authentication_failure_close", ("t", close))]
    p.say(
        "connection.start-ok",
        mechanism=mechanism,
        response=response,
        locale="en_US",
        client_properties=[("capabilities", ("F", capabilities))],
    )


@case
def wrong_password(s: Scene) -> None:
    p = _started(s)
    _start_ok(p, "\0guest\0wrong")
    p.listen(2)


@case
def wrong_password_without_the_capability(s: Scene) -> None:
    p = _started(s)
    _start_ok(p, "\0guest\0wrong", close=False)
    p.listen(1)


@case
def unknown_mechanism(s: Scene) -> None:
    p = _started(s)
    _start_ok(p, mechanism="NOPE")
    p.listen(2)


def _tuned(s: Scene, **options: int) -> Party:
    p = _started(s)
    _start_ok(p)
    assert p._next(5)[0] == "connection.tune"
    p.say("connection.tune-ok", **{"channel_max": 2047, "frame_max": 131_072, "heartbeat": 0, **options})
    return p


@case
def channel_max_above_the_proposal(s: Scene) -> None:
    _tuned(s, channel_max=60_000).listen(2)


@case
def channel_max_of_zero(s: Scene) -> None:
    _tuned(s, channel_max=0).listen(2)


@case
def frame_max_above_the_proposal(s: Scene) -> None:
    _tuned(s, frame_max=10_000_000).listen(2)


@case
def frame_max_below_4096(s: Scene) -> None:
    _tuned(s, frame_max=4095).listen(2)


@case
def frame_max_of_zero(s: Scene) -> None:
    _tuned(s, frame_max=0).listen(2)


@case
def unknown_virtual_host(s: Scene) -> None:
    s.dial(vhost="nope").listen(2)


@case
def method_before_open(s: Scene) -> None:
    p = _tuned(s)
    p.say("channel.open")
    p.listen(2)


@case
def second_connection_open(s: Scene) -> None:
    p = s.dial()
    p.ask("connection.open", virtual_host="/")
    p.listen(1)


@case
def close_of_the_client(s: Scene) -> None:
    p = s.dial()
    p.ask("connection.close", reply_code=200, reply_text="bye")
    p.listen(1)


@case
def update_of_the_secret(s: Scene) -> None:
    p = s.dial()
    p.ask("connection.update-secret", new_secret="guest", reason="r")


@case
def heartbeat_on_a_channel(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(8, 1, b""))
    p.quiet()
    p.settle()


@case
def heartbeat_on_channel_0_with_payload(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(8, 0, b"x"))
    p.quiet()
    p.settle()


@case
def heartbeats_come(s: Scene) -> None:
    p = s.dial(heartbeat=2)
    end = time.monotonic() + 3
    frame = p._frame(end)
    s.note(0, frame)


@case
def silence_is_ended(s: Scene) -> None:
    p = s.dial(heartbeat=1)
    begin = time.monotonic()
    p.listen(1, 8)
    s.note(0, 1 < time.monotonic() - begin < 6)


# -- frames -----------------------------------------------------------------------------------


@case
def frame_with_a_wrong_end(s: Scene) -> None:
    p = s.dial()
    p.write(naive.say("queue.declare", queue="x")[:-1] + b"\xcd")
    p.listen(2)


@case
def frame_of_an_unknown_type(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(9, 1, b"abc"))
    p.listen(2)


@case
def frame_larger_than_frame_max(s: Scene) -> None:
    p = s.dial(frame_max=4096)
    p.write(naive.written_frame(3, 1, bytes(5000)))
    p.listen(2)


@case
def body_without_a_method(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(3, 1, b"abc"))
    p.listen(2)


@case
def header_without_a_method(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(2, 1, bytes(14)))
    p.listen(2)


@case
def method_amid_a_content(s: Scene) -> None:
    p = s.dial()
    octets = naive.carry("basic.publish", b"abc", {}, routing_key="nowhere")
    method_end = 7 + int.from_bytes(octets[3:7], "big") + 1
    p.write(octets[:method_end])
    p.say("queue.declare", queue="x", passive=True)
    p.listen(2)


@case
def body_longer_than_its_header(s: Scene) -> None:
    p = s.dial()
    octets = naive.carry("basic.publish", b"abc", {}, routing_key="nowhere")
    p.write(octets[:-11] + naive.written_frame(3, 1, b"abcdef"))
    p.listen(2)


@case
def header_of_another_class(s: Scene) -> None:
    p = s.dial()
    p.say("basic.publish", routing_key="nowhere")
    p.write(naive.written_frame(2, 1, (50).to_bytes(2, "big") + bytes(12)))
    p.listen(2)


@case
def empty_body_frame(s: Scene) -> None:
    p = s.dial()
    p.queue()
    octets = naive.carry("basic.publish", b"abc", {}, routing_key=s.named("q"))
    p.write(octets[:-11] + naive.written_frame(3, 1, b"") + octets[-11:])
    p.settle()
    p.get()


@case
def unknown_class(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 1, bytes([0, 99, 0, 10])))
    p.listen(2)


@case
def unknown_method(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 1, bytes([0, 60, 0, 99])))
    p.listen(2)


@case
def method_that_ends_early(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 1, bytes([0, 50, 0, 10, 0, 0, 200])))
    p.listen(2)


@case
def method_with_octets_left(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 1, naive.written_method("basic.qos", {}) + b"more"))
    p.listen(2)


@case
def method_of_the_server(s: Scene) -> None:
    p = s.dial()
    p.say("basic.qos-ok")
    p.listen(2)


@case
def access_request(s: Scene) -> None:
    s.dial().ask("access.request", realm="/data")


@case
def table_with_an_unknown_type(s: Scene) -> None:
    p = s.dial()
    payload = naive.written_method("queue.declare", {"queue": s.named("q")})
    p.write(naive.written_frame(1, 1, payload[:-4] + naive.sized("I", b"\x01aZ")))
    p.listen(2)


@case
def channel_methods_on_channel_0(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 0, naive.written_method("channel.open", {})))
    p.listen(2)


@case
def connection_methods_on_a_channel(s: Scene) -> None:
    p = s.dial()
    p.write(naive.written_frame(1, 1, naive.written_method("connection.close", {"reply_code": 200})))
    p.listen(2)


# -- channels ---------------------------------------------------------------------------------


@case
def method_on_a_channel_that_is_not_open(s: Scene) -> None:
    p = s.dial()
    p.say("basic.qos", 7)
    p.listen(2)


@case
def channel_opened_twice(s: Scene) -> None:
    p = s.dial()
    p.say("channel.open")
    p.listen(2)


@case
def channel_above_channel_max(s: Scene) -> None:
    p = s.dial(channel_max=5)
    p.say("channel.open", 6)
    p.listen(2)


@case
def channel_is_closed_and_opened_again(s: Scene) -> None:
    p = s.dial()
    p.ask("channel.close", reply_code=200)
    p.ask("channel.open")
    p.ask("basic.qos", prefetch_count=1)


@case
def close_ok_that_answers_nothing(s: Scene) -> None:
    p = s.dial()
    p.say("channel.close-ok")
    p.quiet()


@case
def methods_after_a_refusal_are_dropped(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.write(
        naive.say("queue.declare", queue="missing", passive=True)
        + naive.say("queue.delete", queue=s.named("q"))
        + naive.say("basic.qos")
    )
    p.answer()
    p.quiet()
    p.count()


@case
def flow_is_not_obeyed(s: Scene) -> None:
    p = s.dial()
    p.ask("channel.flow", active=False)
    if not p.over:
        p.ask("channel.flow", active=True)


@case
def flow_on(s: Scene) -> None:
    s.dial().ask("channel.flow", active=True)


# -- exchanges --------------------------------------------------------------------------------


@case
def exchange_of_each_kind(s: Scene) -> None:
    p = s.dial()
    for kind in ("direct", "fanout", "topic", "headers"):
        p.exchange(kind, kind)
        p.exchange(kind, kind)


@case
def exchange_of_an_unknown_kind(s: Scene) -> None:
    s.dial().exchange(kind="nope")


@case
def exchange_of_no_kind(s: Scene) -> None:
    s.dial().exchange(kind="")


@case
def exchange_declared_with_another_kind(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.exchange(kind="fanout")


@case
def exchange_declared_with_another_durability(s: Scene) -> None:
    p = s.dial()
    p.exchange(durable=True)
    p.exchange()


@case
def exchange_declared_with_another_auto_delete(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.exchange(auto_delete=True)


@case
def exchange_declared_with_another_internal(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.exchange(internal=True)


@case
def exchange_declared_with_another_alternate(s: Scene) -> None:
    p = s.dial()
    p.exchange(arguments={"alternate-exchange": text("a")})
    p.exchange(arguments={"alternate-exchange": text("b")})


@case
def exchange_declared_without_its_alternate(s: Scene) -> None:
    p = s.dial()
    p.exchange(arguments={"alternate-exchange": text("a")})
    p.exchange()


@case
def exchange_declared_with_an_unknown_argument(s: Scene) -> None:
    p = s.dial()
    p.exchange(arguments={"x-unknown": number(1)})
    p.exchange(arguments={"x-unknown": number(2)})


@case
def exchange_with_an_alternate_that_is_no_text(s: Scene) -> None:
    s.dial().exchange(arguments={"alternate-exchange": number(1)})


@case
def exchange_with_a_reserved_name(s: Scene) -> None:
    s.dial().ask("exchange.declare", exchange="amq.mine", type="direct")


@case
def exchange_of_the_broker_declared_again(s: Scene) -> None:
    p = s.dial()
    p.ask("exchange.declare", exchange="amq.direct", type="direct", durable=True)
    p.ask("exchange.declare", exchange="amq.direct", type="direct")


@case
def default_exchange_declared(s: Scene) -> None:
    p = s.dial()
    p.ask("exchange.declare", exchange="", type="direct", durable=True)
    p.ask("exchange.declare", exchange="", type="direct", passive=True)


@case
def default_exchange_deleted(s: Scene) -> None:
    s.dial().ask("exchange.delete", exchange="")


@case
def exchange_found_passively(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.exchange(kind="topic", passive=True, durable=True)
    p.exchange(kind="", passive=True)
    p.exchange("other", passive=True)


@case
def exchange_deleted(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.ask("exchange.delete", exchange=s.named("x"))
    p.ask("exchange.delete", exchange=s.named("x"))
    p.exchange(passive=True)


@case
def exchange_of_the_broker_deleted(s: Scene) -> None:
    s.dial().ask("exchange.delete", exchange="amq.topic")


@case
def exchange_deleted_if_unused(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.queue()
    p.bind()
    p.ask("exchange.delete", exchange=s.named("x"), if_unused=True)
    p.ask("queue.unbind", exchange=s.named("x"), queue=s.named("q"))
    p.ask("exchange.delete", exchange=s.named("x"), if_unused=True)


@case
def missing_exchange_deleted_if_unused(s: Scene) -> None:
    s.dial().ask("exchange.delete", exchange=s.named("x"), if_unused=True)


@case
def auto_delete_exchange_goes_with_its_last_binding(s: Scene) -> None:
    p = s.dial()
    p.exchange(auto_delete=True)
    p.exchange(passive=True)
    p.queue()
    p.bind()
    p.ask("queue.unbind", exchange=s.named("x"), queue=s.named("q"))
    p.exchange(passive=True)


@case
def auto_delete_exchange_goes_with_the_queue(s: Scene) -> None:
    p = s.dial()
    p.exchange(auto_delete=True)
    p.queue()
    p.bind()
    p.ask("queue.delete", queue=s.named("q"))
    p.exchange(passive=True)


@case
def internal_exchange_takes_no_publishes(s: Scene) -> None:
    p = s.dial()
    p.exchange(internal=True)
    p.publish("k", exchange="x")
    p.answer()


@case
def exchange_name_with_a_line_feed(s: Scene) -> None:
    p = s.dial()
    p.exchange("a\nb\r")
    p.exchange("ab", passive=True)


@case
def exchange_bound_to_an_exchange(s: Scene) -> None:
    p = s.dial()
    p.exchange("x", "fanout")
    p.exchange("y", "topic")
    p.ask("exchange.bind", source=s.named("x"), destination=s.named("y"), routing_key="")
    p.queue()
    p.bind(exchange="y", key="#")
    p.publish("a.b", exchange="x")
    p.count(least=1)
    p.get(no_ack=True)
    p.ask("exchange.unbind", source=s.named("x"), destination=s.named("y"), routing_key="")
    p.publish("a.b", exchange="x", mandatory=True)
    p.listen(1)


@case
def exchange_bound_to_a_missing_exchange(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.ask("exchange.bind", source=s.named("x"), destination=s.named("nope"))
    p.ask("exchange.bind", source=s.named("nope"), destination=s.named("x"))


@case
def exchange_bound_to_the_default(s: Scene) -> None:
    p = s.dial()
    p.exchange()
    p.ask("exchange.bind", source=s.named("x"), destination="")
    p.ask("exchange.bind", source="", destination=s.named("x"))


@case
def exchange_bound_in_a_circle(s: Scene) -> None:
    p = s.dial()
    for name in "xy":
        p.exchange(name, "fanout")
    p.ask("exchange.bind", source=s.named("x"), destination=s.named("y"))
    p.ask("exchange.bind", source=s.named("y"), destination=s.named("x"))
    p.queue()
    p.bind(exchange="y")
    p.publish("", exchange="x")
    p.count(least=1)


@case
def exchange_unbound_that_was_not_bound(s: Scene) -> None:
    p = s.dial()
    p.exchange("x")
    p.exchange("y")
    p.ask("exchange.unbind", source=s.named("x"), destination=s.named("y"))
    p.ask("exchange.unbind", source=s.named("x"), destination=s.named("nope"))


@case
def alternate_gets_what_matches_nothing(s: Scene) -> None:
    p = s.dial()
    p.exchange("alt", "fanout")
    p.exchange(arguments={"alternate-exchange": text(s.named("alt"))})
    p.queue()
    p.bind(exchange="alt")
    p.publish("nowhere", exchange="x", mandatory=True)
    p.settle()
    p.count(least=1)
    p.get()


@case
def alternate_that_does_not_exist(s: Scene) -> None:
    p = s.dial()
    p.exchange(arguments={"alternate-exchange": text("nowhere")})
    p.publish("k", exchange="x", mandatory=True)
    p.listen(1)


# -- queues -----------------------------------------------------------------------------------


@case
def queue_with_a_generated_name(s: Scene) -> None:
    p = s.dial()
    p.ask("queue.declare", exclusive=True)
    p.ask("queue.declare", passive=True)


@case
def queue_declared_again(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.queue()


@case
def queue_declared_with_another_durability(s: Scene) -> None:
    p = s.dial()
    p.queue(durable=True)
    p.queue()


@case
def queue_declared_with_another_auto_delete(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue(auto_delete=True)


@case
def queue_declared_with_another_exclusive(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue(exclusive=True)


@case
def exclusive_queue_declared_without(s: Scene) -> None:
    p = s.dial()
    p.queue(exclusive=True)
    p.queue()


@case
def queue_declared_with_more_arguments(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue(arguments={"x-max-length": number(5)})


@case
def queue_declared_with_fewer_arguments(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length": number(5), "x-message-ttl": number(60_000)})
    p.queue(arguments={"x-message-ttl": number(60_000)})


@case
def queue_declared_with_other_values(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-message-ttl": number(60_000)})
    p.queue(arguments={"x-message-ttl": number(60_001)})


@case
def queue_declared_with_another_width(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-message-ttl": number(60_000)})
    p.queue(arguments={"x-message-ttl": ("l", 60_000)})


@case
def queue_declared_with_an_unknown_argument(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-unknown": number(5)})
    p.queue(arguments={"x-unknown": number(6)})
    p.queue()


@case
def queue_declared_with_another_dead_letter_exchange(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-dead-letter-exchange": text("a")})
    p.queue(arguments={"x-dead-letter-exchange": text("b")})


@case
def queue_declared_with_another_type(s: Scene) -> None:
    p = s.dial()
    p.queue(durable=True)
    p.queue(durable=True, arguments=QUORUM)


@case
def queue_declared_with_the_default_type(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue(arguments={"x-queue-type": text("classic")})


@case
def queue_found_passively(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue(passive=True, durable=True, arguments={"x-max-length": number(1)})
    p.queue("other", passive=True)


@case
def queue_with_a_reserved_name(s: Scene) -> None:
    s.dial().ask("queue.declare", queue="amq.mine")


@case
def last_queue_is_meant_by_no_name(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.ask("queue.purge")
    p.ask("basic.get")
    p.ask("queue.bind", exchange="amq.direct")
    p.publish(s.named("q"), raw="amq.direct", mandatory=True)
    p.settle()
    p.get()


@case
def no_name_without_a_last_queue(s: Scene) -> None:
    p = s.dial()
    p.open_channel(2)
    p.ask("basic.get", 2)
    p.ask("basic.consume", 2)
    p.ask("queue.purge", 2)
    p.ask("queue.delete", 2)
    p.ask("queue.bind", 2, exchange="amq.direct")


@case
def queue_name_with_a_line_feed(s: Scene) -> None:
    p = s.dial()
    p.queue("a\nb")
    p.queue("ab", passive=True)


@case
def exclusive_queue_of_another(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue(exclusive=True)
    other.queue(exclusive=True)
    other.queue(passive=True)
    other.get()
    other.consume()
    other.bind(exchange="nope")
    other.ask("queue.bind", queue=s.named("q"), exchange="amq.direct", routing_key="k")
    other.ask("queue.purge", queue=s.named("q"))
    other.ask("queue.delete", queue=s.named("q"))
    other.publish("q", mandatory=True)
    other.settle()
    one.count(least=1)


@case
def exclusive_queue_goes_with_its_connection(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue(exclusive=True)
    one.ask("connection.close", reply_code=200)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        other.say("queue.declare", queue=s.named("q"), passive=True)
        name, found = other._next(5)
        if name == "channel.close" and found["reply_code"] == 404:
            s.note(1, name)
            return
        if name == "channel.close":
            other.say("channel.close-ok")
            other._reopen(1)
        time.sleep(0.05)
    s.note(1, "still there")


@case
def auto_delete_queue_goes_with_its_last_consumer(s: Scene) -> None:
    p = s.dial()
    p.queue(auto_delete=True)
    p.count()
    p.consume()
    p.ask("basic.cancel", consumer_tag="c")
    time.sleep(0.1)
    p.queue(passive=True)


@case
def queue_deleted(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for _ in range(3):
        p.publish("q")
    p.settle()
    p.ask("queue.delete", queue=s.named("q"))
    p.ask("queue.delete", queue=s.named("q"))


@case
def queue_deleted_if_empty(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.ask("queue.delete", queue=s.named("q"), if_empty=True)
    p.ask("queue.purge", queue=s.named("q"))
    p.ask("queue.delete", queue=s.named("q"), if_empty=True)


@case
def queue_with_unacknowledged_deleted_if_empty(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.get()
    p.ask("queue.delete", queue=s.named("q"), if_empty=True)


@case
def queue_deleted_if_unused(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue()
    one.consume()
    other.ask("queue.delete", queue=s.named("q"), if_unused=True)
    one.ask("basic.cancel", consumer_tag="c")
    other.ask("queue.delete", queue=s.named("q"), if_unused=True)


@case
def missing_queue_deleted_if_unused(s: Scene) -> None:
    s.dial().ask("queue.delete", queue=s.named("q"), if_unused=True, if_empty=True)


@case
def purge_counts_ready_messages(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for _ in range(3):
        p.publish("q")
    p.settle()
    p.get()
    p.ask("queue.purge", queue=s.named("q"))
    p.ask("queue.purge", queue=s.named("missing"))


@case
def queue_deleted_under_its_consumer(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue()
    one.consume()
    other.ask("queue.delete", queue=s.named("q"))
    one.listen(1)
    one.ask("basic.cancel", consumer_tag="c")


@case
def queue_deleted_by_its_consumer(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.consume()
    p.ask("queue.delete", queue=s.named("q"))
    p.listen(1)


@case
def queue_that_expires(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-expires": number(200)})
    time.sleep(0.6)
    p.queue(passive=True)


# -- arguments of queues ------------------------------------------------------------------------


def _argument(name: str, *values: tuple[str, object], quorum: bool = False) -> Callable[[Scene], None]:
    def run(s: Scene) -> None:
        p = s.dial()
        for place, value in enumerate(values):
            if p.over:
                p = s.dial()
            p.queue(f"q{place}", durable=True, arguments={name: value} | (QUORUM if quorum else {}))

    return run


_ARGUMENTS: Final[dict[str, tuple[str, tuple[tuple[str, object], ...]]]] = {
    "message_ttl": (
        "x-message-ttl",
        (
            number(0),
            number(-1),
            ("l", 2**32),
            ("l", 315_360_000_000),
            ("l", 315_360_000_001),
            text("10"),
            ("t", True),
            ("d", 5.0),
            ("V", None),
        ),
    ),
    "expires": ("x-expires", (number(0), number(-1), ("l", 2**32), ("l", 315_360_000_001), text("10"))),
    "max_length": ("x-max-length", (number(0), number(-1), ("l", 2**40), text("10"), ("f", 1.0))),
    "max_length_bytes": ("x-max-length-bytes", (number(0), number(-1), text("10"))),
    "max_priority": (
        "x-max-priority",
        (number(0), number(255), number(256), number(-1), text("5"), ("b", 5), ("B", 5), ("s", 5), ("u", 5)),
    ),
    "overflow": (
        "x-overflow",
        (text("drop-head"), text("reject-publish"), text("reject-publish-dlx"), text("nope"), number(1)),
    ),
    "dead_letter_exchange": ("x-dead-letter-exchange", (text(""), text("nowhere"), number(1))),
    "dead_letter_key_alone": ("x-dead-letter-routing-key", (text("k"),)),
    "delivery_limit": ("x-delivery-limit", (number(0), number(5), number(-1), text("5"))),
    "single_active_consumer": ("x-single-active-consumer", (("t", True), text("true"), number(1))),
    "queue_type": ("x-queue-type", (text("classic"), text("nope"), number(1), text(""))),
    "queue_mode": ("x-queue-mode", (text("lazy"), text("default"), text("nope"))),
    "queue_version": ("x-queue-version", (number(1), number(2), number(3))),
    "consumer_timeout": ("x-consumer-timeout", (number(10_000), number(-1), text("10"))),
    "group_size": ("x-quorum-initial-group-size", (number(1), number(0), text("1"))),
    "target_group_size": ("x-quorum-target-group-size", (number(1), number(0))),
    "leader_locator": ("x-queue-leader-locator", (text("client-local"), text("balanced"), text("nope"))),
    "dead_letter_strategy": (
        "x-dead-letter-strategy",
        (text("at-most-once"), text("at-least-once"), text("nope")),
    ),
    "max_age": ("x-max-age", (text("1D"),)),
    "max_in_memory_length": ("x-max-in-memory-length", (number(5),)),
    "stream_segment": ("x-stream-max-segment-size-bytes", (number(5),)),
    "master_locator": ("x-queue-master-locator", (text("client-local"), text("nope"))),
}
for _name, (_key, _values) in _ARGUMENTS.items():
    CASES[f"argument_{_name}_of_classic"] = _argument(_key, *_values)
    if _name != "queue_type":
        CASES[f"argument_{_name}_of_quorum"] = _argument(_key, *_values, quorum=True)


@case
def quorum_queue_that_is_transient(s: Scene) -> None:
    s.dial().queue(durable=False, arguments=QUORUM)


@case
def quorum_queue_that_is_exclusive(s: Scene) -> None:
    s.dial().queue(exclusive=True, arguments=QUORUM)


@case
def quorum_queue_that_is_auto_delete(s: Scene) -> None:
    s.dial().queue(auto_delete=True, arguments=QUORUM)


@case
def quorum_queue_without_a_name(s: Scene) -> None:
    s.dial().ask("queue.declare", durable=True, arguments=[("x-queue-type", text("quorum"))])


# -- bindings -----------------------------------------------------------------------------------


@case
def queue_bound_to_what_is_missing(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange()
    p.bind(exchange="nope")
    p.bind(queue="nope")
    p.bind(queue="nope", exchange="nope")


@case
def queue_bound_to_the_default_exchange(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.ask("queue.bind", queue=s.named("q"), exchange="", routing_key="k")
    p.ask("queue.unbind", queue=s.named("q"), exchange="", routing_key="k")


@case
def queue_unbound_from_what_is_missing(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange()
    p.ask("queue.unbind", queue=s.named("q"), exchange=s.named("x"), routing_key="k")
    p.ask("queue.unbind", queue=s.named("q"), exchange=s.named("nope"), routing_key="k")
    p.ask("queue.unbind", queue=s.named("nope"), exchange=s.named("x"), routing_key="k")


@case
def queue_bound_twice_gets_one_copy(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange(kind="topic")
    p.bind(key="a.*")
    p.bind(key="*.b")
    p.bind(key="*.b")
    p.publish("a.b", exchange="x")
    p.count(least=1)


@case
def bindings_that_differ_in_arguments(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange()
    p.bind(key="k", a=number(1))
    p.bind(key="k")
    p.ask("queue.unbind", queue=s.named("q"), exchange=s.named("x"), routing_key="k")
    p.publish("k", exchange="x", mandatory=True)
    p.count(least=1)


def _topic(pattern: str, *keys: str) -> Callable[[Scene], None]:
    def run(s: Scene) -> None:
        p = s.dial()
        p.queue()
        p.exchange(kind="topic")
        p.bind(key=pattern)
        for key in keys:
            p.publish(key, key.encode(), exchange="x", mandatory=True)
        p.settle()
        p.quiet()
        p.count()

    return run


_KEYS: Final = ("", "a", "a.b", "a.b.c", ".", "a.", ".a", "a..b", "*", "#", "a.#", "A.B")
for _place, _pattern in enumerate(
    ("", "#", "*", "a", "a.*", "a.#", "#.b", "*.*", "#.#", "a.#.b", "a..b", ".", "*.", "#.a.#", "a*", "*#")
):
    CASES[f"topic_{_place}"] = _topic(_pattern, *_KEYS)


def _headers(
    arguments: dict[str, tuple[str, object]], *found: dict[str, tuple[str, object]]
) -> Callable[[Scene], None]:
    def run(s: Scene) -> None:
        p = s.dial()
        p.queue()
        p.exchange(kind="headers")
        p.bind(**arguments)
        for place, each in enumerate(found):
            p.publish("", b"%d" % place, exchange="x", mandatory=True, headers=letters(each))
        p.settle()
        p.quiet()
        p.count()

    return run


_FIVES: Final = (
    {},
    {"n": number(5)},
    {"n": ("l", 5)},
    {"n": ("b", 5)},
    {"n": ("d", 5.0)},
    {"n": ("f", 5.0)},
    {"n": text("5")},
    {"n": ("T", 5)},
    {"n": ("D", (0, 5))},
    {"n": ("D", (1, 50))},
    {"n": ("x", b"5")},
    {"n": ("V", None)},
    {"n": ("t", True)},
    {"n": number(5), "m": number(6)},
    {"n": number(6)},
)
for _name, _arguments in {
    "int": {"n": number(5)},
    "double": {"n": ("d", 5.0)},
    "text": {"n": text("5")},
    "octets": {"n": ("x", b"5")},
    "timestamp": {"n": ("T", 5)},
    "decimal": {"n": ("D", (0, 5))},
    "void": {"n": ("V", None)},
    "true": {"n": ("t", True)},
    "nothing": {},
    "x_header": {"x-n": number(5)},
    "any_nothing": {"x-match": text("any")},
    "any_two": {"x-match": text("any"), "n": number(5), "m": number(7)},
    "all_two": {"x-match": text("all"), "n": number(5), "m": number(6)},
    "all_with_x": {"x-match": text("all-with-x"), "n": number(5)},
    "any_with_x": {"x-match": text("any-with-x"), "n": number(5), "x-n": number(1)},
}.items():
    CASES[f"headers_{_name}"] = _headers(_arguments, *_FIVES)
CASES["headers_x_ignored"] = _headers(
    {"x-match": text("all"), "x-n": number(1), "n": number(5)}, {"n": number(5)}, {"x-n": number(1)}
)
CASES["headers_x_with_x"] = _headers(
    {"x-match": text("all-with-x"), "x-n": number(1)}, {"n": number(5)}, {"x-n": number(1)}
)
CASES["headers_table"] = _headers(
    {"n": ("F", [("a", number(1))])},
    {"n": ("F", [("a", number(1))])},
    {"n": ("F", [("a", ("l", 1))])},
    {"n": ("F", [("a", number(2))])},
    {"n": ("A", [number(1)])},
)
CASES["headers_array"] = _headers(
    {"n": ("A", [number(1), text("a")])},
    {"n": ("A", [number(1), text("a")])},
    {"n": ("A", [text("a"), number(1)])},
    {"n": ("A", [])},
)


@case
def headers_with_a_wrong_match(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange(kind="headers")
    p.bind(**{"x-match": text("odd")})
    p.bind(**{"x-match": number(1)})


@case
def match_at_another_exchange(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.exchange()
    p.bind(**{"x-match": text("odd")})


# -- publishes ----------------------------------------------------------------------------------


@case
def publish_to_a_missing_exchange(s: Scene) -> None:
    p = s.dial()
    p.publish("k", exchange="nope")
    p.answer()


@case
def publish_and_close_at_once(s: Scene) -> None:
    p = s.dial()
    p.publish("k", exchange="nope")
    p.say("channel.close", reply_code=200)
    p.answer()
    p.quiet()


@case
def publish_to_a_missing_exchange_in_confirm_mode(s: Scene) -> None:
    p = s.dial()
    p.ask("confirm.select")
    p.queue()
    p.publish("q")
    p.publish("k", exchange="nope")
    p.answer()


@case
def mandatory_publish_that_reaches_nothing(s: Scene) -> None:
    p = s.dial()
    p.publish("nowhere", b"body", mandatory=True, headers=letters({"a": number(1)}), priority=3)
    p.listen(1)
    p.publish("nowhere", b"body")
    p.quiet()


@case
def mandatory_publish_is_returned_before_its_confirm(s: Scene) -> None:
    p = s.dial()
    p.ask("confirm.select")
    p.publish("nowhere", mandatory=True)
    p.listen(2)
    p.publish("nowhere")
    p.listen(1)


@case
def immediate_publish(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", immediate=True)
    p.listen(2)


@case
def publish_with_a_wrong_user(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", user_id="guest")
    p.settle()
    p.get()
    p.publish("q", user_id="other")
    p.answer()


def _expiration(value: str) -> Callable[[Scene], None]:
    def run(s: Scene) -> None:
        p = s.dial()
        p.queue()
        p.publish("q", expiration=value)
        p.settle()
        p.quiet(0.05)
        p.get()

    return run


for _name, _value in {
    "empty": "",
    "text": "abc",
    "negative": "-1",
    "fraction": "1.5",
    "plus": "+60000",
    "spaces": " 60000",
    "leading_zeros": "00060000",
    "zero": "0",
    "of_32_bits": "4294967295",
    "above_32_bits": "4294967296",
    "largest": "315360000000",
    "above_largest": "315360000001",
    "hexadecimal": "0x10",
    "underscore": "60_000",
    "other_digits": "٣٠٠٠٠",
}.items():
    CASES[f"expiration_{_name}"] = _expiration(_value)


@case
def properties_are_kept(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish(
        "q",
        b"body",
        content_type="text/plain",
        content_encoding="utf-8",
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id="guest",
        app_id="a",
        cluster_id="k",
    )
    p.settle()
    p.get()


@case
def header_types_are_kept(s: Scene) -> None:
    p = s.dial()
    p.queue()
    found: dict[str, tuple[str, object]] = {
        "t": ("t", True),
        "b": ("b", -5),
        "B": ("B", 200),
        "s": ("s", -300),
        "u": ("u", 60_000),
        "I": ("I", -70_000),
        "i": ("i", 4_000_000_000),
        "l": ("l", -(2**40)),
        "f": ("f", 1.5),
        "d": ("d", 2.5),
        "D": ("D", (2, 314)),
        "S": ("S", b"text"),
        "x": ("x", b"\x00\xff"),
        "A": ("A", [("I", 1), ("S", b"a"), ("A", [])]),
        "T": ("T", 1_700_000_000),
        "F": ("F", [(b"k", ("S", b"v"))]),
        "V": ("V", None),
    }
    for letter, each in found.items():
        p.publish("q", letter.encode(), headers=letters({letter: each}))
    p.settle()
    for _ in found:
        p.get(no_ack=True)


@case
def header_twice_in_a_table(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", headers=[("a", number(1)), ("a", number(2))])
    p.settle()
    p.get()


@case
def copies_by_cc_and_bcc(s: Scene) -> None:
    p = s.dial()
    for name in ("q", "cc", "bcc"):
        p.queue(name)
    found = {"CC": ("A", [text(s.named("cc"))]), "BCC": ("A", [text(s.named("bcc"))])}
    p.publish("q", headers=letters(found))
    for name in ("q", "cc", "bcc"):
        p.count(name, least=1)
        p.get(name)


@case
def cc_that_is_no_list(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", headers=letters({"CC": text("a")}))
    p.answer()


@case
def cc_of_numbers(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", headers=letters({"CC": ("A", [number(1)])}))
    p.settle()
    p.count()


@case
def body_of_many_frames(s: Scene) -> None:
    p = s.dial(frame_max=4096)
    p.queue()
    p.publish("q", bytes(range(256)) * 80)
    p.settle()
    p.get()


@case
def message_above_the_largest_size(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.say("basic.publish", routing_key=s.named("q"))
    p.write(
        naive.written_frame(
            2, 1, (60).to_bytes(2, "big") + bytes(2) + (600_000_000).to_bytes(8, "big") + bytes(2)
        )
    )
    p.answer()


@case
def empty_body(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", b"")
    p.settle()
    p.get()


# -- qos, consumers -----------------------------------------------------------------------------


@case
def prefetch_in_octets(s: Scene) -> None:
    p = s.dial()
    p.ask("basic.qos", prefetch_size=100)
    p.listen(1)


@case
def prefetch_of_a_consumer(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(4):
        p.publish("q", b"%d" % n)
    p.ask("basic.qos", prefetch_count=2)
    p.consume()
    p.listen(2)
    p.quiet()
    p.say("basic.ack", delivery_tag=1)
    p.listen(1)
    p.quiet()


@case
def prefetch_is_for_later_consumers(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.ask("basic.qos", prefetch_count=1)
    p.consume()
    p.ask("basic.qos", prefetch_count=5)
    for n in range(4):
        p.publish("q", b"%d" % n)
    p.listen(1)
    p.quiet()


@case
def prefetch_of_the_channel(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.queue("other")
    p.ask("basic.qos", prefetch_count=2, global_=True)
    p.consume()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.listen(2)
    p.quiet()
    p.consume("other", "d")
    p.publish("other")
    p.quiet()
    p.say("basic.ack", delivery_tag=1)
    p.say("basic.ack", delivery_tag=2)
    p.quiet(0.3)


@case
def prefetch_of_the_channel_at_a_quorum_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments=QUORUM)
    p.ask("basic.qos", prefetch_count=2, global_=True)
    p.consume()
    p.quiet()


@case
def consumer_of_a_missing_queue(s: Scene) -> None:
    s.dial().consume()


@case
def consumer_with_a_used_tag(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.consume()
    p.consume()
    p.listen(1)


@case
def consumer_with_a_generated_tag(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.consume(tag="")


@case
def consumer_that_is_exclusive(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue()
    one.consume(exclusive=True)
    other.consume()
    other.consume(exclusive=True)
    one.consume(tag="d")


@case
def exclusive_consumer_beside_another(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.consume()
    p.consume(tag="d", exclusive=True)


@case
def get_beside_an_exclusive_consumer(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue()
    one.consume(exclusive=True)
    other.get()


@case
def consumer_without_its_own_messages(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.consume(no_local=True)
    p.publish("q")
    p.listen(1)


@case
def consumer_priority_that_is_no_number(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for place, value in enumerate((text("1"), ("d", 1.0), ("t", True), ("l", 2**40), number(-5))):
        p.consume(tag=f"c{place}", arguments={"x-priority": value})


@case
def consumers_of_different_priorities(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.ask("basic.qos", prefetch_count=1)
    p.consume(tag="low")
    p.consume(tag="high", arguments={"x-priority": number(5)})
    p.consume(tag="lowest", arguments={"x-priority": number(-5)})
    for n in range(4):
        p.publish("q", b"%d" % n)
        p.settle()
        p.quiet(0.1)


@case
def consumers_in_turn(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for tag in "abc":
        p.consume(tag=tag, no_ack=True)
    for n in range(6):
        p.publish("q", b"%d" % n)
        p.listen(1)


@case
def cancel_of_an_unknown_consumer(s: Scene) -> None:
    s.dial().ask("basic.cancel", consumer_tag="nope")


@case
def cancel_keeps_what_is_unacknowledged(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.ask("basic.qos", prefetch_count=2)
    p.consume()
    p.listen(2)
    p.ask("basic.cancel", consumer_tag="c")
    p.count()
    p.say("basic.nack", delivery_tag=2, multiple=True, requeue=True)
    p.settle()
    p.count(least=3)


@case
def consumer_cancelled_without_an_answer(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.say("basic.consume", queue=s.named("q"), consumer_tag="c", no_wait=True)
    p.publish("q")
    p.listen(1)
    p.say("basic.cancel", consumer_tag="c", no_wait=True)
    p.settle()
    p.count()


@case
def methods_without_answers(s: Scene) -> None:
    p = s.dial()
    p.say("exchange.declare", exchange=s.named("x"), type="fanout", no_wait=True)
    p.say("queue.declare", queue=s.named("q"), no_wait=True)
    p.say("queue.bind", queue=s.named("q"), exchange=s.named("x"), no_wait=True)
    p.publish("", exchange="x")
    p.settle()
    p.count(least=1)
    p.say("queue.purge", queue=s.named("q"), no_wait=True)
    p.count()
    p.say("queue.delete", queue=s.named("q"), no_wait=True)
    p.say("exchange.delete", exchange=s.named("x"), no_wait=True)
    p.quiet()
    p.count()


@case
def messages_for_a_single_active_consumer(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-single-active-consumer": ("t", True)})
    p.ask("basic.qos", prefetch_count=1)
    p.consume(tag="a")
    p.consume(tag="b")
    for n in range(4):
        p.publish("q", b"%d" % n)
    p.listen(1)
    p.quiet()
    p.ask("basic.cancel", consumer_tag="a")
    p.listen(1)
    p.quiet()
    p.say("basic.ack", delivery_tag=1)
    p.say("basic.ack", delivery_tag=2)
    p.listen(1)
    p.quiet()


@case
def messages_for_a_single_active_consumer_of_a_quorum_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-single-active-consumer": ("t", True), **QUORUM})
    p.ask("basic.qos", prefetch_count=1)
    p.consume(tag="a")
    p.consume(tag="b")
    for n in range(4):
        p.publish("q", b"%d" % n)
    p.listen(1)
    p.quiet(0.3)
    p.ask("basic.cancel", consumer_tag="a")
    p.quiet(0.3)
    p.say("basic.ack", delivery_tag=1)
    p.quiet(0.3)


@case
def single_active_consumer_that_is_lost(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue(arguments={"x-single-active-consumer": ("t", True)})
    one.consume(tag="a")
    other.consume(tag="b")
    one.publish("q")
    one.listen(1)
    one.drop()
    other.listen(1)


@case
def exclusive_consumer_of_a_single_active_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-single-active-consumer": ("t", True)})
    p.consume(exclusive=True)


@case
def single_active_consumer_with_a_priority(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-single-active-consumer": ("t", True)})
    p.ask("basic.qos", prefetch_count=1)
    p.consume(tag="a")
    p.consume(tag="b", arguments={"x-priority": number(5)})
    p.publish("q")
    p.listen(1)


@case
def get_from_a_single_active_queue(s: Scene) -> None:
    p = s.dial()
    for name, arguments in (("q", {}), ("quorum", QUORUM)):
        p.queue(name, arguments={"x-single-active-consumer": ("t", True), **arguments})
        p.get(name)


@case
def consumer_of_the_direct_replies(s: Scene) -> None:
    p = s.dial()
    p.ask("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="c")
    p.ask("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="c", no_ack=True)
    p.ask("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="d", no_ack=True)
    p.ask("queue.declare", queue="amq.rabbitmq.reply-to", passive=True)
    p.ask("queue.declare", queue="amq.rabbitmq.reply-to.nope", passive=True)


@case
def request_with_a_direct_reply(s: Scene) -> None:
    one, other = s.dial(), s.dial()
    one.queue()
    one.publish("q", reply_to="amq.rabbitmq.reply-to")
    one.answer()
    one.ask("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="c", no_ack=True)
    one.publish("q", reply_to="amq.rabbitmq.reply-to")
    one.settle()
    found = other.get()
    key = found["properties"]["reply_to"].decode()
    other.ask("queue.declare", queue=key, passive=True)
    other.publish(key, b"reply", raw="", mandatory=True)
    one.listen(1)
    one.ask("basic.cancel", consumer_tag="c")
    other.publish(key, b"late", raw="", mandatory=True)
    other.listen(1)


# -- get, acknowledgements ------------------------------------------------------------------------


@case
def get_from_an_empty_queue(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.get()
    p.get("missing")


@case
def get_counts_what_is_left(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.settle()
    for no_ack in (False, True, False, False):
        p.get(no_ack=no_ack)


@case
def acknowledgement_of_an_unknown_tag(s: Scene) -> None:
    p = s.dial()
    p.say("basic.ack", delivery_tag=7)
    p.answer()


@case
def acknowledgement_twice(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.get()
    p.say("basic.ack", delivery_tag=1)
    p.say("basic.ack", delivery_tag=1)
    p.answer()
    p.count()


@case
def acknowledgement_of_what_needs_none(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.get(no_ack=True)
    p.say("basic.ack", delivery_tag=1)
    p.answer()


@case
def acknowledgement_of_several_with_none(s: Scene) -> None:
    p = s.dial()
    p.say("basic.ack", delivery_tag=0, multiple=True)
    p.settle()
    p.say("basic.ack", delivery_tag=5, multiple=True)
    p.answer()


@case
def acknowledgement_of_all(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.settle()
    for _ in range(3):
        p.get()
    p.say("basic.ack", delivery_tag=0, multiple=True)
    p.settle()
    p.ask("basic.recover", requeue=True)
    p.count()


@case
def acknowledgement_of_tag_0(s: Scene) -> None:
    p = s.dial()
    p.say("basic.ack", delivery_tag=0)
    p.answer()


@case
def acknowledgement_of_several_up_to_an_unknown_tag(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.settle()
    for _ in range(3):
        p.get()
    p.say("basic.ack", delivery_tag=2)
    p.say("basic.ack", delivery_tag=2, multiple=True)
    p.quiet()
    p.count(least=1)


@case
def answers_before_a_wrong_acknowledgement_come(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.write(naive.say("basic.qos") + naive.say("basic.ack", delivery_tag=9))
    p.answer()
    p.answer()


@case
def rejection_of_an_unknown_tag(s: Scene) -> None:
    p = s.dial()
    p.say("basic.reject", delivery_tag=7)
    p.answer()
    p.say("basic.nack", delivery_tag=7)
    p.answer()
    p.say("basic.nack", delivery_tag=7, multiple=True)
    p.answer()


@case
def rejection_with_requeue(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.settle()
    p.get()
    p.get()
    p.say("basic.reject", delivery_tag=1, requeue=True)
    p.settle()
    p.get()
    p.get()


@case
def rejection_without_requeue(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.get()
    p.say("basic.reject", delivery_tag=1, requeue=False)
    p.settle()
    p.count()


@case
def recovery_to_the_queue(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(2):
        p.publish("q", b"%d" % n)
    p.settle()
    p.get()
    p.get()
    p.ask("basic.recover", requeue=True)
    p.count(least=2)
    p.get()


@case
def recovery_to_the_same_consumer(s: Scene) -> None:
    p = s.dial()
    p.ask("basic.recover", requeue=False)
    p.quiet()


@case
def recovery_without_an_answer(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q")
    p.settle()
    p.get()
    p.say("basic.recover-async", requeue=True)
    p.settle()
    p.count(least=1)


@case
def recovery_while_consuming(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(2):
        p.publish("q", b"%d" % n)
    p.settle()
    p.consume()
    p.listen(2)
    p.ask("basic.recover", requeue=True)
    p.quiet(0.3)


@case
def unacknowledged_messages_return_with_their_channel(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for n in range(3):
        p.publish("q", b"%d" % n)
    p.settle()
    p.get()
    p.get()
    p.ask("channel.close", reply_code=200)
    p.ask("channel.open")
    p.count(least=3)
    for _ in range(3):
        p.get()


# -- confirms, transactions -----------------------------------------------------------------------


@case
def confirms_in_order(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.ask("confirm.select")
    for _ in range(3):
        p.publish("q")
        p.listen(1)
    p.ask("confirm.select")
    p.publish("q")
    p.listen(1)


@case
def confirms_on_a_transactional_channel(s: Scene) -> None:
    p = s.dial()
    p.ask("tx.select")
    p.ask("confirm.select")
    p.ask("confirm.select")
    p.ask("tx.select")


@case
def confirm_of_what_is_refused(s: Scene) -> None:
    p = s.dial()
    p.ask("confirm.select")
    p.queue(arguments={"x-max-length": number(1), "x-overflow": text("reject-publish")})
    for _ in range(3):
        p.publish("q")
        p.listen(1)


@case
def confirm_of_what_expires_at_once(s: Scene) -> None:
    p = s.dial()
    p.ask("confirm.select")
    p.queue()
    p.publish("q", expiration="0")
    p.listen(1)
    p.count()


@case
def commit_without_a_transaction(s: Scene) -> None:
    p = s.dial()
    p.ask("tx.commit")
    p.ask("tx.rollback")


@case
def commit_of_publishes_and_acknowledgements(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", b"0")
    p.settle()
    p.ask("tx.select")
    p.ask("tx.select")
    p.get()
    p.publish("q", b"1")
    p.say("basic.ack", delivery_tag=1)
    p.settle()
    p.count()
    p.ask("tx.rollback")
    p.count()
    p.say("basic.ack", delivery_tag=1)
    p.publish("q", b"2")
    p.ask("tx.commit")
    p.count(least=1)
    p.get()


@case
def commit_returns_what_reaches_nothing(s: Scene) -> None:
    p = s.dial()
    p.ask("tx.select")
    p.publish("nowhere", mandatory=True)
    p.quiet()
    p.ask("tx.commit")
    p.quiet()


@case
def commit_to_a_full_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length": number(0), "x-overflow": text("reject-publish")})
    p.ask("tx.select")
    p.publish("q")
    p.ask("tx.commit")


@case
def publish_to_a_missing_exchange_in_a_transaction(s: Scene) -> None:
    p = s.dial()
    p.ask("tx.select")
    p.publish("k", exchange="nope")
    p.ask("tx.commit")


@case
def acknowledgement_of_an_unknown_tag_in_a_transaction(s: Scene) -> None:
    p = s.dial()
    p.ask("tx.select")
    p.say("basic.ack", delivery_tag=5)
    p.answer()


# -- lives and deaths of messages -----------------------------------------------------------------


def _letters(s: Scene, **arguments: tuple[str, object]) -> Party:
    p = s.dial()
    p.queue("dead")
    found = {"x-dead-letter-exchange": text(""), "x-dead-letter-routing-key": text(s.named("dead"))}
    p.queue(arguments=found | {key.replace("_", "-"): each for key, each in arguments.items()})
    return p


@case
def letter_of_a_rejection(s: Scene) -> None:
    p = _letters(s)
    p.publish("q", headers=letters({"a": number(1)}), expiration="60000")
    p.settle()
    p.get()
    p.say("basic.reject", delivery_tag=1)
    p.count("dead", least=1)
    p.get("dead")


@case
def letter_of_an_expiry(s: Scene) -> None:
    p = _letters(s, x_message_ttl=number(50))
    p.publish("q")
    p.settle()
    p.count("dead", least=1)
    p.get("dead")


@case
def letter_of_an_expiration(s: Scene) -> None:
    p = _letters(s)
    p.publish("q", expiration="50")
    p.settle()
    p.count("dead", least=1)
    p.get("dead")


@case
def letter_of_an_overflow(s: Scene) -> None:
    p = _letters(s, x_max_length=number(1))
    p.publish("q", b"1")
    p.publish("q", b"2")
    p.settle()
    p.count("dead", least=1)
    p.get("dead")
    p.get()


@case
def letter_of_a_refusal(s: Scene) -> None:
    p = _letters(s, x_max_length=number(1), x_overflow=text("reject-publish-dlx"))
    p.ask("confirm.select")
    for body in (b"1", b"2"):
        p.publish("q", body)
        p.listen(1)
    p.count("dead", least=1)
    p.get("dead")


@case
def letter_of_the_delivery_limit(s: Scene) -> None:
    p = _letters(s, x_queue_type=text("quorum"), x_delivery_limit=number(1))
    p.publish("q")
    p.count(least=1)
    for tag in (1, 2):
        p.get()
        p.say("basic.reject", delivery_tag=tag, requeue=True)
        p.settle()
        p.count("q" if tag == 1 else "dead", least=1)
    p.get("dead")


@case
def letters_of_two_deaths(s: Scene) -> None:
    p = s.dial()
    p.exchange("dlx", "fanout")
    p.queue("a", arguments={"x-dead-letter-exchange": text(s.named("dlx"))})
    p.queue(
        "b", arguments={"x-dead-letter-exchange": text(""), "x-dead-letter-routing-key": text(s.named("c"))}
    )
    p.queue("c")
    p.bind("b", "dlx")
    p.publish("a", headers=letters({"CC": ("A", [text("other")])}))
    p.settle()
    for tag, name in enumerate("ab", 1):
        p.count(name, least=1)
        p.get(name)
        p.say("basic.reject", delivery_tag=tag)
    p.count("c", least=1)
    p.get("c")


@case
def letter_that_returns(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-dead-letter-exchange": text("")})
    p.publish("q")
    p.settle()
    for tag in (1, 2):
        p.count(least=1)
        p.get()
        p.say("basic.reject", delivery_tag=tag)
    p.count(least=1)
    p.get()


@case
def letter_that_goes_in_circles(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-dead-letter-exchange": text(""), "x-message-ttl": number(30)})
    p.publish("q")
    p.settle()
    time.sleep(0.3)
    p.count()


@case
def letter_to_a_missing_exchange(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-dead-letter-exchange": text("nowhere")})
    p.publish("q")
    p.settle()
    p.get()
    p.say("basic.reject", delivery_tag=1)
    p.settle()
    p.count()


@case
def letter_with_a_false_history(s: Scene) -> None:
    p = _letters(s)
    p.publish("q", headers=letters({"x-death": text("nonsense"), "x-first-death-queue": text("f")}))
    p.settle()
    p.get()
    p.say("basic.reject", delivery_tag=1)
    p.count("dead", least=1)
    p.get("dead")


@case
def letter_with_a_history_of_the_client(s: Scene) -> None:
    p = _letters(s)
    death = [("queue", text("f")), ("reason", text("rejected")), ("count", ("l", 3)), ("exchange", text("e"))]
    p.publish("q", headers=letters({"x-death": ("A", [("F", death)])}))
    p.settle()
    p.get()
    p.say("basic.reject", delivery_tag=1)
    p.count("dead", least=1)
    p.get("dead")


@case
def delivery_count_of_a_quorum_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments=QUORUM)
    p.publish("q")
    p.count(least=1)
    for tag in (1, 2):
        p.get()
        p.say("basic.nack", delivery_tag=tag, requeue=True)
        p.settle()
        p.count(least=1)
    p.get()


@case
def messages_expire_at_the_head_alone(s: Scene) -> None:
    p = s.dial()
    p.queue()
    p.publish("q", b"long", expiration="60000")
    p.publish("q", b"short", expiration="30")
    p.settle()
    time.sleep(0.3)
    p.count()
    p.get()
    p.count()


@case
def messages_with_no_life(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-message-ttl": number(0)})
    p.publish("q")
    p.settle()
    p.count()
    p.consume(no_ack=True)
    p.publish("q")
    p.listen(1)


@case
def lesser_of_two_lives(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-message-ttl": number(50)})
    p.publish("q", expiration="60000")
    p.settle()
    time.sleep(0.3)
    p.count()


@case
def oldest_is_dropped_from_a_full_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length": number(2)})
    for n in range(4):
        p.publish("q", b"%d" % n)
    p.settle()
    p.count()
    p.get()


@case
def unacknowledged_messages_take_no_room(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length": number(1)})
    p.publish("q", b"0")
    p.settle()
    p.get()
    p.publish("q", b"1")
    p.settle()
    p.count()
    p.say("basic.nack", delivery_tag=1, requeue=True)
    p.settle()
    p.count()
    p.get()


@case
def octets_are_those_of_bodies(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length-bytes": number(20)})
    for n in range(3):
        p.publish("q", b"%d" % n * 10, headers=letters({"long": text("x" * 100)}))
    p.settle()
    p.count()


@case
def message_above_the_octets_of_a_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-length-bytes": number(5)})
    p.publish("q", b"0123456789")
    p.settle()
    p.count()


@case
def priorities_of_messages(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-priority": number(5)})
    for n, priority in enumerate((0, 5, 3, 9, 3)):
        p.publish("q", b"%d" % n, priority=priority)
    p.publish("q", b"none")
    p.settle()
    for _ in range(6):
        p.get(no_ack=True)


@case
def priorities_without_the_argument(s: Scene) -> None:
    p = s.dial()
    p.queue()
    for priority in (1, 9):
        p.publish("q", b"%d" % priority, priority=priority)
    p.settle()
    p.get()


@case
def priorities_of_a_quorum_queue(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments=QUORUM)
    for priority in (1, 9, 5, 4):
        p.publish("q", b"%d" % priority, priority=priority)
    p.count(least=4)
    for _ in range(4):
        p.get(no_ack=True)


@case
def overflow_of_a_queue_with_priorities(s: Scene) -> None:
    p = s.dial()
    p.queue(arguments={"x-max-priority": number(5), "x-max-length": number(2)})
    for n, priority in enumerate((5, 1, 3)):
        p.publish("q", b"%d" % n, priority=priority)
    p.settle()
    p.count()
    for _ in range(2):
        p.get(no_ack=True)
