"""``$cbs``: tokens that peers put, their claims, and the end of a token."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import OneOctetStream
from trio_amqp10.amqp10.peer.cbs import TokenRefusedError
from trio_amqp10.amqp10.peer.errors import LinkDetachedError, LinkRefusedError
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.wire.values import Int, Timestamp
from trio_amqp10.container import Claim, Container, RefusedError, SasKeys, TokenOffer
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import SAS, Token, sign_sas

from .helpers import bodies

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.broker.rights.access import Access

KEYS = SasKeys(
    {"root": ("k1", "send receive create transact"), "sender": ("k2", "send"), "x": ("k3", ["receive"])}
)
HOST = "sb://ns.example"
NEEDED = "put-token needs a name and a type, as strings, and the token as a string in the body"
NOW = 1_000_000.0
began = trio.lowlevel.RunVar("began", 0.0)


def wall() -> float:
    """A wall clock that goes with trio's, which begins anywhere."""
    return NOW + trio.current_time() - began.get()


def container_of(verify: Any = KEYS, *, azure: bool = False, **options: Any) -> Container:
    began.set(trio.current_time())
    container = Container(wall_clock=wall, **options)
    container.add_cbs(verify, azure=azure)
    return container


def token(path: str = "/q", name: str = "root", *, seconds: float = 60.0, key: str | None = None) -> Token:
    keys = {"root": "k1", "sender": "k2", "x": "k3"}
    return sign_sas(f"{HOST}{path}", name, key or keys.get(name, "?"), wall() + seconds)


async def may(conn: amqp.Connection, action: str, address: str) -> bool:
    opening: Any = conn.open_sender(address) if action == "send" else conn.open_receiver(address)
    try:
        async with opening:
            return True
    except LinkRefusedError as refusal:
        if refusal.condition != "amqp:unauthorized-access":
            raise
        return False


async def test_request_is_settled_before_its_reply_as_at_azure() -> None:
    container = container_of()
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            Acceptor(container_id="c", sasl=amqp.sasl.Server()).run, OneOctetStream(ours), container.handle
        )
        async with (
            amqp.open_connection(theirs) as conn,
            conn.open_receiver("$cbs", credit=1) as replies,
            conn.open_sender("$cbs") as sender,
        ):
            asked = amqp.Message("x", application_properties={"operation": "put-token"})
            delivery = await sender.transmit(asked)
            reply = await replies.receive()
            assert (reply.message.application_properties or {})["status-code"] == 400
            assert delivery.state is not None, "it was read before the reply"
            assert await delivery.outcome() == amqp.Accepted()
        nursery.cancel_scope.cancel()


# -- tokens and what they permit


async def test_nothing_is_permitted_without_a_token_and_all_that_it_says_with_one(
    autojump_clock: MockClock,
) -> None:
    async with container_of().connect() as conn:
        assert not await may(conn, "send", "q")
        await conn.put_token(f"{HOST}/q", token())
        async with conn.open_sender("q") as sender:
            await sender.send("x")
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]
        assert await may(conn, "receive", "q/Subscriptions/s")
        assert not await may(conn, "send", "q2")
        async with conn.open_requester("q/$management", direct=True), conn.open_transaction():
            pass


async def test_token_permits_only_what_its_key_does(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token(name="sender"))
        assert await may(conn, "send", "q")
        assert not await may(conn, "receive", "q")
        with pytest.raises(LinkRefusedError, match="may not have a node made"):
            async with conn.open_receiver(None, source=Source(dynamic=True)):
                pass
        await conn.put_token(f"{HOST}/r", token("/r", "x"))
        assert await may(conn, "receive", "r")
        assert not await may(conn, "send", "r")


async def test_token_for_the_whole_host_is_good_for_all_but_what_begins_with_a_dollar(
    autojump_clock: MockClock,
) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(HOST, token(""))
        assert await may(conn, "send", "q")
        assert not await may(conn, "send", "$management")


async def test_token_is_good_for_its_connection_only(autojump_clock: MockClock) -> None:
    container = container_of()
    async with container.connect() as one, container.connect() as other:
        await one.put_token(f"{HOST}/q", token())
        assert await may(one, "send", "q")
        assert not await may(other, "send", "q")


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        (lambda: token(key="wrong"), "the signature was not made with the key"),
        (lambda: token(name="stranger"), "the signature was not made with the key"),
        (lambda: token(name="stranger", key="-"), "the signature was not made with the key"),
        (lambda: token(seconds=-1), "the token has expired"),
        (lambda: token("/other"), "the token is for 'sb://ns.example/other', not for 'sb://ns.example/q'"),
        (lambda: Token("x.y.z", "jwt"), "no SAS token: it does not begin with SharedAccessSignature"),
        (lambda: Token("x", SAS), "no SAS token"),
    ],
)
async def test_token_is_refused_when_it_is_not_good(
    offered: Any, why: str, autojump_clock: MockClock
) -> None:
    async with container_of().connect() as conn:
        with pytest.raises(TokenRefusedError, match=f"401 .*{why}") as refused:
            await conn.put_token(f"{HOST}/q", offered())
        assert refused.value.status_code == 401
        assert refused.value.status_description is not None
        assert not await may(conn, "send", "q")


async def test_address_that_is_a_uri_means_its_path(autojump_clock: MockClock) -> None:
    container = container_of(azure=True)
    async with container.connect() as conn:
        assert not await may(conn, "send", "amqps://ns.example/q")
        await conn.put_token(f"{HOST}/q", token())
        async with conn.open_sender("amqps://ns.example/q") as sender:
            assert sender.address == "q"
            await sender.send("x")
        assert not await may(conn, "send", "amqps://ns.example/r")
        await conn.put_token(HOST, token(""))
        assert await may(conn, "send", "amqps://ns.example")
        assert not await may(conn, "send", "amqps://ns.example/$management")
    assert list(container.nodes) == ["$cbs", "q"]
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token())
        assert not await may(conn, "send", "amqps://ns.example/q")


@pytest.mark.parametrize("azure", [False, True])
async def test_what_arrives_is_settled_here_first_when_like_azure(azure: bool) -> None:
    async with container_of(lambda offer: Claim(offer.audience, None), azure=azure).connect() as conn:
        await conn.put_token("q", Token("t", "jwt"))
        if azure:
            with pytest.raises(amqp.GuaranteeNotSupportedError):
                await conn.open_sender("q", guarantee="exactly-once").__aenter__()
        else:
            async with conn.open_sender("q", guarantee="exactly-once") as sender:
                await sender.send("x")


# -- verifying in one's own way


@pytest.mark.parametrize("is_async", [False, True])
async def test_verify_of_ones_own_says_what_a_token_permits(
    is_async: bool, autojump_clock: MockClock
) -> None:
    offers: list[TokenOffer] = []

    def verify(offer: TokenOffer) -> Claim | None:
        offers.append(offer)
        if offer.token.value == "why":
            raise RefusedError("app:any", "the tenant is asleep")
        if offer.token.value != "good":
            return None
        return Claim(offer.audience, None, frozenset({"send"}), "ada")

    async def verify_later(offer: TokenOffer) -> Claim | None:
        await trio.sleep(1)
        return verify(offer)

    users = amqp.sasl.Server(users={"eve": "x"})
    container = container_of(verify_later if is_async else verify)
    async with container.connect(users=users, sasl=amqp.sasl.Plain("eve", "x")) as conn:
        await conn.put_token("q", Token("good", "jwt", 2_000_000.5))
        assert await may(conn, "send", "q")
        for value, why in (("bad", "401 the token is not valid"), ("why", "401 the tenant is asleep")):
            with pytest.raises(TokenRefusedError, match=why):
                await conn.put_token("q", Token(value, "jwt"))
        await trio.sleep(1000)
        assert await may(conn, "send", "q")
    assert offers[0].token == Token("good", "jwt", 2_000_000.5)
    assert offers[1].token.expires is None
    assert offers[0].identity == amqp.sasl.Identity("eve", "PLAIN")
    assert offers[0].now >= NOW


@pytest.mark.logs_errors
async def test_verify_that_raises_is_logged_and_refuses(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    def verify(offer: TokenOffer) -> Claim:
        raise ValueError("no keys")

    async with container_of(verify).connect() as conn:
        with pytest.raises(TokenRefusedError, match="500 the token could not be verified"):
            await conn.put_token("q", Token("a secret", "jwt"))
    assert "no keys" in caplog.text
    assert caplog.messages == ["a token for 'q' could not be verified"]
    assert "a secret" not in caplog.text


async def test_claims_are_told_to_a_hook_that_decides_otherwise(autojump_clock: MockClock) -> None:
    asked: list[Access] = []

    def authorise(access: Access) -> bool:
        asked.append(access)
        return access.action == "open" or access.address == "free" or access.claimed

    container = container_of(authorise=authorise)
    async with container.connect() as conn:
        assert await may(conn, "send", "free")
        assert not await may(conn, "send", "q")
        await conn.put_token(f"{HOST}/q", token(name="sender"))
        assert await may(conn, "send", "q")
    assert asked[-1].claims == (Claim(f"{HOST}/q", NOW + 60, frozenset({"send"}), "sender"),)
    assert {one.address for one in asked} == {None, "free", "q"}  # nobody is asked for $cbs


# -- the end of claims


async def test_links_are_detached_when_the_claim_ends(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token(seconds=60))
        await conn.put_token(f"{HOST}/r", token("/r", seconds=600))
        async with (
            conn.open_sender("q") as sender,
            conn.open_receiver("q") as receiver,
            conn.open_sender("r") as other,
        ):
            await trio.sleep(59)
            await sender.send("x")
            await trio.sleep(2)
            with pytest.raises(LinkDetachedError, match="may not send to 'q'") as detached:
                await sender.send("y")
            assert detached.value.condition == "amqp:unauthorized-access"
            with pytest.raises(LinkDetachedError, match="may not receive from 'q'"):
                while True:
                    await receiver.receive()
            await other.send("z")
        assert not await may(conn, "send", "q")


async def test_links_stay_when_another_token_comes_in_time(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token(seconds=60))
        async with conn.open_sender("q") as sender:
            for _ in range(5):
                await trio.sleep(50)
                await conn.put_token(f"{HOST}/q", token(seconds=60))
                await sender.send("x")


async def test_links_are_detached_when_the_next_token_permits_less(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token())
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await conn.put_token(f"{HOST}/q", token(name="sender"))
            with pytest.raises(LinkDetachedError, match="may not receive"):
                await receiver.receive()
            await sender.send("x")


async def test_claim_ends_when_the_peer_says_if_that_is_sooner(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        good = token(seconds=60)
        await conn.put_token(f"{HOST}/q", Token(good.value, SAS, wall() + 10))
        await trio.sleep(9)
        assert await may(conn, "send", "q")
        await trio.sleep(2)
        assert not await may(conn, "send", "q")
        await conn.put_token(f"{HOST}/q", Token(good.value, SAS, wall() + 1000))
        await trio.sleep(40)
        assert await may(conn, "send", "q")
        await trio.sleep(10)
        assert not await may(conn, "send", "q")
        with pytest.raises(TokenRefusedError, match="the token has expired"):
            await conn.put_token(f"{HOST}/q", Token(token().value, SAS, wall() - 1))


async def test_relay_rejects_messages_once_the_claim_has_ended(autojump_clock: MockClock) -> None:
    async with container_of().connect() as conn:
        await conn.put_token(f"{HOST}/q", token(seconds=60))
        async with conn.open_sender(None) as sender:
            await sender.send(amqp.Message("x", to="q"))
            await trio.sleep(61)
            with pytest.raises(amqp.DeliveryRejectedError, match="unauthorized-access"):
                await sender.send(amqp.Message("x", to="q"))


async def test_claims_do_not_hold_up_the_end_of_a_connection(autojump_clock: MockClock) -> None:
    container = container_of()
    before = trio.current_time()
    async with container.connect() as conn:
        await conn.put_token(f"{HOST}/q", token(seconds=3000))
        assert await container.finish(1.0)
    assert trio.current_time() - before < 1


async def test_claim_that_is_verified_after_its_connection_went_is_dropped(autojump_clock: MockClock) -> None:
    async def verify(offer: TokenOffer) -> Claim:
        await trio.sleep(100)
        return Claim(offer.audience, offer.now + 100_000)

    before = trio.current_time()
    async with container_of(verify).connect(close_timeout=200) as conn:
        with pytest.raises(trio.TooSlowError), trio.fail_after(10):
            await conn.put_token("q", Token("t", "jwt"))
    assert 100 <= trio.current_time() - before < 110


async def test_replies_come_in_order_whatever_verifying_takes(autojump_clock: MockClock) -> None:
    async def verify(offer: TokenOffer) -> Claim:
        await trio.sleep(float(offer.token.value))
        return Claim(offer.audience, None)

    async with (
        container_of(verify).connect() as conn,
        conn.open_receiver("$cbs", target=Target(address="$cbs")) as replies,
        conn.open_sender("$cbs") as sender,
    ):
        for number, seconds in enumerate(("9", "1", "0")):
            request = put_token(seconds)
            request.message_id = number
            await sender.transmit(request)
        ids = [(await replies.receive()).message.correlation_id for _ in range(3)]
        assert ids == [0, 1, 2]


async def test_ten_tokens_are_verified_at_a_time(autojump_clock: MockClock) -> None:
    now = most = 0

    async def verify(offer: TokenOffer) -> Claim:
        nonlocal now, most
        now += 1
        most = max(now, most)
        await trio.sleep(1)
        now -= 1
        return Claim(offer.audience, None)

    async with (
        container_of(verify).connect() as conn,
        conn.open_receiver("$cbs", target=Target(address="$cbs"), credit=100) as replies,
        conn.open_sender("$cbs") as sender,
    ):
        for _ in range(25):
            await sender.transmit(put_token())
        for _ in range(25):
            (await replies.receive()).accept()
    assert most == 10


# -- the form of requests and replies


async def ask(conn: amqp.Connection, message: amqp.Message) -> amqp.Message:
    async with conn.open_requester("$cbs", direct=True) as requester:
        return await requester.request(message)


def put_token(body: Any = "t", **properties: Any) -> amqp.Message:
    said = {"operation": "put-token", "type": "jwt", "name": "q", **properties}
    return amqp.Message(
        amqp.Value(body),
        application_properties={key: value for key, value in said.items() if value is not None},
    )


async def test_reply_has_a_status_and_the_id_of_its_request() -> None:
    async with container_of(lambda offer: Claim(offer.audience, None)).connect() as conn:
        request = put_token(expiration=Timestamp(5))
        request.message_id = uuid.uuid4()
        reply = await ask(conn, request)
        assert reply.correlation_id == request.message_id
        assert reply.application_properties == {"status-code": 202, "status-description": "Accepted"}
        assert isinstance(reply.application_properties["status-code"], Int)
        assert reply.body is None


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (
            put_token(operation="delete-token"),
            "the operation is 'delete-token': expected put-token",
        ),
        (put_token(operation=None), "the operation is None: expected put-token"),
        (put_token(name=None), NEEDED),
        (put_token(name=7), NEEDED),
        (put_token(type=None), NEEDED),
        (put_token(b"octets"), NEEDED),
        (put_token(name=""), "the name has 0 characters: expected 1 to 2048"),
        (put_token(name="a" * 2049), "the name has 2049 characters: expected 1 to 2048"),
        (amqp.Message("t"), "the operation is None: expected put-token"),
    ],
)
async def test_request_that_is_none_gets_status_400(request_: amqp.Message, why: str) -> None:
    async with container_of().connect() as conn:
        said: Any = (await ask(conn, request_)).application_properties
        assert said["status-code"] == 400
        assert said["status-description"] == why


async def test_request_without_reply_to_is_answered_on_the_link_of_its_sender() -> None:
    # So azure-servicebus asks: both ends of both links are called $cbs.
    container = container_of(lambda offer: Claim(offer.audience, None))
    async with (
        container.connect() as conn,
        container.connect() as other,
        other.open_receiver("$cbs", target=Target(address="$cbs")),
        conn.open_receiver("$cbs", target=Target(address="$cbs")) as replies,
        conn.open_sender("$cbs") as sender,
    ):
        await sender.send(put_token())
        delivery = await replies.receive()
        said: Any = delivery.message.application_properties
        assert said["status-code"] == 202
        assert delivery.message.to is None


async def test_request_is_answered_on_the_link_of_its_sender_that_reply_to_names() -> None:
    # So Azure's clients for JavaScript ask: the link for replies has a name, and a target without an address.
    container = container_of(lambda offer: Claim(offer.audience, None))
    async with (
        container.connect() as conn,
        conn.open_receiver("$cbs", name="mine", target=Target()) as replies,
        conn.open_receiver("$cbs", name="other", target=Target()),
        conn.open_sender("$cbs") as sender,
    ):
        request = put_token()
        request.reply_to = "mine"
        await sender.send(request)
        delivery = await replies.receive()
        assert delivery.message.application_properties["status-code"] == 202


async def test_request_that_nobody_can_be_told_of_counts_all_the_same() -> None:
    async with container_of(lambda offer: Claim(offer.audience, None)).connect() as conn:
        async with conn.open_sender("$cbs") as sender:
            await sender.send(put_token())
        assert await may(conn, "send", "q")


async def test_replies_of_cbs_go_nowhere_without_permission() -> None:
    container = container_of(lambda offer: Claim("other", None))
    container.add_queue("secret")
    async with container.connect() as conn, conn.open_sender("$cbs") as sender:
        request = put_token()
        request.reply_to = "secret"
        await sender.send(request)
    assert len(container.nodes["secret"]) == 0  # type: ignore[arg-type]


async def test_request_that_cannot_be_read_is_rejected() -> None:
    async with container_of().connect() as conn, conn.open_sender("$cbs") as sender:
        with pytest.raises(amqp.DeliveryRejectedError, match="decode-error"):
            await sender.send(amqp.Message.from_payload(b"?"))


async def test_connection_has_claims_for_so_many_audiences_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_amqp10.container import cbs

    monkeypatch.setattr(cbs, "_MOST", 3)
    async with container_of(lambda offer: Claim(offer.audience, None)).connect() as conn:
        for number in range(3):
            await conn.put_token(f"q{number}", Token("t", "jwt"))
        with pytest.raises(TokenRefusedError, match="403 this connection has tokens for 3 audiences"):
            await conn.put_token("more", Token("t", "jwt"))
        await conn.put_token("q0", Token("t", "jwt"))


async def test_name_of_2048_characters_is_an_audience() -> None:
    async with container_of(lambda offer: Claim(offer.audience, None)).connect() as conn:
        said: Any = (await ask(conn, put_token(name="a" * 2048))).application_properties
        assert said["status-code"] == 202


@pytest.mark.parametrize(("seconds", "status"), [(-1.0, 401), (0.0, 401), (0.5, 202)])
async def test_claim_that_ends_now_is_refused(seconds: float, status: int, autojump_clock: MockClock) -> None:
    async with container_of(lambda offer: Claim(offer.audience, offer.now + seconds)).connect() as conn:
        said: Any = (await ask(conn, put_token())).application_properties
        assert said["status-code"] == status
        assert said["status-description"] == {401: "the token has expired", 202: "Accepted"}[status]


async def test_end_of_a_claim_is_logged(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    caplog.set_level(logging.DEBUG, "trio_amqp10.container")
    verify = lambda offer: Claim(offer.audience, offer.now + 5)  # noqa: E731
    async with container_of(verify).connect(container_id="me") as conn:
        await conn.put_token("q", Token("t", "jwt"))
        await trio.sleep(6)
    assert "'me': the claim for 'q' has ended" in caplog.messages


def test_container_has_one_cbs() -> None:
    container = Container()
    container.add_cbs(KEYS)
    with pytest.raises(LocalProtocolError, match="exists already"):
        container.add_cbs(KEYS)
