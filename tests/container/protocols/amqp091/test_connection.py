"""The handshake, rights and quotas, the brake, and the end of a connection."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.protocols.served import accepted
from trio_amqp10 import amqp091, sasl
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.fields import USUAL, write_table
from trio_amqp10.amqp091.frames import PROTOCOL_HEADER
from trio_amqp10.container import Container, Quotas, Rules
from trio_amqp10.container.protocols.amqp091.protocol import Amqp091

from .script import CAPABLE, Client, dialled, opened

USERS = sasl.Server({"ada": "secret"})


async def started(client: Client) -> set[str]:
    """The mechanisms that the server offers."""
    await client.stream.send_all(PROTOCOL_HEADER)
    start = await client.hear()
    assert start is not None
    assert (start["version_major"], start["version_minor"], start["locales"]) == (0, 9, b"en_US")
    properties = dict(start["server_properties"])
    assert properties[b"product"] == ("S", b"trio-amqp10")
    assert dict(properties[b"capabilities"][1])[b"publisher_confirms"] == ("t", True)
    return set(start["mechanisms"].decode().split())


def amqplain(user: str, password: str) -> bytes:
    out = bytearray()
    write_table(out, {"LOGIN": user, "PASSWORD": password}, USUAL)
    return bytes(out[4:])


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0ada\0secret"),
        ("AMQPLAIN", amqplain("ada", "secret")),
    ],
)
async def test_client_logs_in_by_each_mechanism_of_one_message(mechanism: str, response: bytes) -> None:
    container = Container()
    async with dialled(container, USERS) as client:
        assert mechanism in await started(client)
        answer = spec.ConnectionStartOk(mechanism=mechanism, response=response)
        tune = await client.ask(answer, 0)
        assert tune == {"channel_max": 2047, "frame_max": 131_072, "heartbeat": 60}
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        (peer,) = container.connected
        assert peer.identity == sasl.Identity("ada", mechanism)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0ada\0wrong"),
        ("PLAIN", b"nonsense"),
        ("AMQPLAIN", amqplain("ada", "wrong")),
        ("AMQPLAIN", b"nonsense"),
        ("ANONYMOUS", b""),
        ("ODD", b""),
    ],
)
async def test_login_is_refused_with_403_after_a_while(
    mechanism: str, response: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await started(client)
        began = trio.current_time()
        answer = spec.ConnectionStartOk(client_properties=CAPABLE, mechanism=mechanism, response=response)
        close = await client.ask(answer, 0)
        assert trio.current_time() - began >= 1
        assert (close.name, close["reply_code"]) == ("connection.close", 403)
        assert (close["class_id"], close["method_id"]) == (0, 0)
        assert await client.hear() is None


async def test_login_is_refused_in_silence_when_the_client_knows_no_close_of_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    _ = autojump_clock
    async with dialled(Container(), USERS) as client:
        await started(client)
        await client.say(spec.ConnectionStartOk(response=b"\0ada\0wrong"), channel=0)
        assert await client.hear() is None


async def test_guest_is_nobody_when_there_are_no_users() -> None:
    container = Container()
    async with opened(container):
        (peer,) = container.connected
        assert peer.identity.mechanism == "ANONYMOUS"


async def test_scram_proves_both_ends(autojump_clock: trio.testing.MockClock) -> None:
    _ = autojump_clock
    container = Container()
    dialect = Amqp091(container)
    async with trio.open_nursery() as nursery:
        listen = partial(amqp.serve, _unused, "amqp://127.0.0.1:0", sasl=USERS, dialects=(dialect,))
        listeners = await nursery.start(listen)
        url = f"amqp://ada:secret@127.0.0.1:{listeners[0].port}"
        async with amqp091.open_connection(url) as connection:
            (peer,) = container.connected
            assert peer.identity.mechanism.startswith("SCRAM-SHA-")
            async with connection.open_channel() as channel:
                queue = await channel.declare_queue("q")
                await channel.publish("", "q", b"1")
                got = await queue.get()
                assert got is not None
                assert got.body == b"1"
                got.ack()
        nursery.cancel_scope.cancel()


async def _unused(connection: amqp.Connection) -> None:
    raise AssertionError(connection)


async def test_unknown_virtual_host_is_refused_with_530() -> None:
    async with dialled(Container()) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        close = await client.ask(spec.ConnectionOpen(virtual_host="odd"), 0)
        assert (close["reply_code"], close["reply_text"]) == (530, b"NOT_ALLOWED - vhost odd not found")
        assert (close["class_id"], close["method_id"]) == (10, 40)


@pytest.mark.parametrize(
    "tune",
    [
        spec.ConnectionTuneOk(channel_max=2048, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=0, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=1, frame_max=131_073),
        spec.ConnectionTuneOk(channel_max=1, frame_max=4095),
    ],
    ids=repr,
)
async def test_limits_out_of_bounds_are_refused_with_530(tune: spec.ConnectionTuneOk) -> None:
    async with dialled(Container()) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        assert (await client.ask(tune, 0))["reply_code"] == 530


async def test_connection_that_is_not_permitted_is_refused_with_530() -> None:
    container = Container(authorise=Rules(("ada", "send", "*")))
    async with dialled(container) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0))["reply_code"] == 530
        await client.say(spec.ConnectionCloseOk(), channel=0)
        assert await client.hear() is None
    assert not container.connected


async def test_connection_beyond_a_quota_is_refused_with_530() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with opened(container), dialled(container) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0))["reply_code"] == 530


async def test_closed_connection_is_answered_when_what_came_before_is_done() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with opened(container) as client:
        await client.publish("", "q", b"1")
        await client.say(spec.ChannelClose())
        await client.say(spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "channel.close-ok"  # type: ignore[union-attr]
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        assert await client.hear() is None
        assert len(queue) == 1
    assert not container.connected


async def test_publish_counts_when_the_connection_is_closed_right_behind_it() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with opened(container) as client:
        await client.publish("", "q", b"1")
        await client.say(spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        assert len(queue) == 1


async def test_service_that_ends_closes_connections_with_320() -> None:
    ours, theirs = memory_stream_pair()
    client = Client(theirs)
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await Amqp091(Container()).serve(accepted(ours))

        nursery.start_soon(serve)
        await client.open()
        scope.cancel()
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)
        await client.say(spec.ConnectionCloseOk(), channel=0)
        assert await client.hear() is None


async def test_client_is_told_that_it_is_blocked_and_read_again_when_there_is_memory() -> None:
    container = Container(memory_limit=4_000)
    container.add_queue("q")
    async with opened(container) as client, opened(container) as other:
        for _ in range(2):
            await client.publish("", "q", bytes(3_000))
        blocked = await client.hear()
        assert blocked is not None
        assert (blocked.name, blocked["reason"]) == ("connection.blocked", b"low on memory")
        await client.say(spec.QueueDeclare(queue="later"))
        await wait_all_tasks_blocked()
        assert "later" not in container.nodes
        assert (await other.ask(spec.QueuePurge(queue="q"))).name == "queue.purge-ok"
        assert (await client.hear()).name == "connection.unblocked"  # type: ignore[union-attr]
        assert (await client.hear()).name == "queue.declare-ok"  # type: ignore[union-attr]


async def test_client_is_not_read_while_a_queue_of_the_program_is_full() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    async with opened(container) as client, opened(container) as other:
        for _ in range(3):
            await client.publish("", "q")
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        for _ in range(3):
            assert (await other.ask(spec.BasicGet(queue="q", no_ack=True))).name == "basic.get-ok"
        await wait_all_tasks_blocked()
        assert len(queue) == 0


async def test_unacknowledged_message_goes_back_at_once_when_a_method_ends_the_connection() -> None:
    container = Container()
    container.add_queue("q")
    async with opened(container) as client, opened(container) as other:
        await client.publish("", "q", b"1")
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.BasicQos(prefetch_count=1, prefetch_size=1))
        assert (close.name, close["reply_code"]) == ("connection.close", 540)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
        await client.say(spec.ConnectionCloseOk(), channel=0)
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.QueueDeclare(queue="s", arguments={"x-queue-type": "stream"}))
        assert (close.name, close["reply_code"]) == ("connection.close", 540)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.ChannelOpen())
        assert (close.name, close["reply_code"]) == ("connection.close", 504)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        container.connected[0].close("amqp:connection:forced", "enough")
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"


async def test_secret_of_another_login_is_accepted() -> None:
    async with opened() as client:
        answer = await client.ask(spec.ConnectionUpdateSecret(new_secret=b"x", reason="y"), 0)
        assert answer.name == "connection.update-secret-ok"


async def test_connection_is_shown_to_management_with_its_consumers() -> None:
    container = Container()
    async with opened(container, connection_name="mine") as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        (peer,) = container.connected
        assert peer.container_id == "mine"
        assert peer.statistics()["protocol"] == "AMQP 0-9-1"
        (link,) = peer.links()
        assert (link.role, link.name, link.statistics()["address"]) == ("sender", "1/c", "q")


async def test_management_closes_a_connection_with_320() -> None:
    container = Container()
    container.add_management()
    asked = {"operation": "DELETE", "type": "connection", "identity": "1"}
    async with opened(container) as client:
        async with container.connect() as conn, conn.open_requester("$management") as requester:
            reply = await requester.request(amqp.Message(None, application_properties=asked))
            assert reply.application_properties["statusCode"] == 204
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)


async def test_both_dialects_are_served_at_one_port() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=["0-9-1"]))
        url = listeners[0].url
        async with (
            amqp.open_connection(url) as new,
            amqp091.open_connection(url) as old,
            old.open_channel() as channel,
            new.open_receiver("q") as receiver,
        ):
            await channel.publish("", "q", b"from one to the other")
            delivery = await receiver.receive()
            assert delivery.message.body == b"from one to the other"
            delivery.accept()
        nursery.cancel_scope.cancel()


async def test_unknown_dialect_is_refused_by_name() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="no dialect '0-8'"):
        await Container().serve("amqp://127.0.0.1:0", dialects=["0-8"])


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        (b"AMQP\0\0\x09\x01", True),
        (b"AMQP\1\1\0\x09", True),
        (b"AMQP\0\0\x09\x00", True),
        (b"AMQP", None),
        (b"AMQP\0", None),
        (b"AMQP\0\1\0\0", False),
        (b"AMQP\3\1\0\0", False),
        (b"\x16\3\1", False),
    ],
)
async def test_header_tells_the_dialect(head: bytes, claim: bool | None) -> None:
    await trio.lowlevel.checkpoint()
    assert Amqp091(Container()).claims(head) is claim


async def test_connection_ends_quietly_when_the_client_leaves_after_its_limits_were_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container()
    ours, theirs = memory_stream_pair()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Amqp091(container).serve, accepted(ours))
            client = Client(theirs)
            await started(client)
            await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
            close = await client.ask(spec.ConnectionTuneOk(frame_max=0xFFFFFFFF), 0)
            assert (close.name, close["reply_code"]) == ("connection.close", 530)
            await theirs.aclose()
    assert not [record for record in caplog.records if record.exc_info]


async def test_connection_ends_quietly_when_its_permission_comes_too_late(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    _ = autojump_clock

    async def authorise(_access: object) -> bool:
        await trio.sleep(100)
        return True

    container = Container(authorise=authorise)
    with trio.fail_after(1000):
        async with dialled(container) as client:
            await started(client)
            await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
            await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
            await client.say(spec.ConnectionOpen(), channel=0)
            assert await client.hear() is None
            await trio.sleep(200)
            assert not container.connected
    assert not [record for record in caplog.records if record.exc_info]
