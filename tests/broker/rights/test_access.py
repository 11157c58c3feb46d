"""Rights of a container: the authorise function, its questions, and rules."""

from __future__ import annotations

import logging
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of
from trio_amqp10.amqp10.peer.errors import (
    ConnectionClosedError,
    LinkDetachedError,
    LinkRefusedError,
    TransactionError,
)
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.broker.rights.access import Access, Rules
from trio_amqp10.container import Container, RefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

USERS = amqp.sasl.Server(users={"ada": "enigma", "bob": "x"}, anonymous=True)


@asynccontextmanager
async def as_user(container: Container, name: str | None = None) -> AsyncGenerator[amqp.Connection]:
    """Connect a client as this user, or anonymously."""
    mechanism = amqp.sasl.Plain(name, {"ada": "enigma", "bob": "x"}[name]) if name else amqp.sasl.Anonymous()
    async with container.connect(users=USERS, sasl=mechanism, container_id="client") as conn:
        yield conn


def access(action: Any, address: str | None = None, user: str | None = None) -> Access:
    identity = None if user is None else Identity(user, "PLAIN")
    return Access(action=action, address=address, identity=identity, container_id="c")


# -- questions


@pytest.mark.parametrize("is_async", [False, True])
async def test_hook_is_asked_for_the_connection_and_each_link(is_async: bool) -> None:
    asked: list[Access] = []

    def authorise(access: Access) -> bool:
        asked.append(access)
        return True

    async def authorise_later(access: Access) -> bool:
        await trio.lowlevel.checkpoint()
        return authorise(access)

    container = Container(authorise=authorise_later if is_async else authorise)
    async with as_user(container, "ada") as conn:
        async with conn.open_sender("q") as sender:
            await sender.send("x")
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]
        async with conn.open_receiver(None, source=Source(dynamic=True)) as replies:
            async with conn.open_sender(
                replies.address
            ) as sender:  # its own node: the function is not called
                await sender.send("y")
            assert await bodies(replies, 1) == ["y"]
        async with conn.open_transaction():
            pass
        async with conn.open_sender(None) as sender:
            await sender.send(amqp.Message("z", to="q2"))
    assert [(one.action, one.address) for one in asked] == [
        ("open", None),
        ("send", "q"),
        ("receive", "q"),
        ("create", None),
        ("transact", None),
        ("send", "q2"),
    ]
    assert {(one.user, one.container_id, one.claims) for one in asked} == {("ada", "client", ())}
    assert asked[0].identity == Identity("ada", "PLAIN")


async def test_user_is_none_when_the_peer_is_anonymous_or_has_no_sasl() -> None:
    asked: list[Access] = []

    def authorise(access: Access) -> bool:
        asked.append(access)
        return True

    container = Container(authorise=authorise)
    async with as_user(container), container.connect():
        await wait_all_tasks_blocked()
    assert [one.user for one in asked] == [None, None]
    assert {None if one.identity is None else one.identity.mechanism for one in asked} == {None, "ANONYMOUS"}


# -- refusals


@pytest.mark.parametrize("is_async", [False, True])
async def test_link_that_is_not_permitted_is_refused(is_async: bool) -> None:
    def authorise(access: Access) -> bool:
        return access.action == "open" or access.address == "q"

    async def authorise_later(access: Access) -> bool:
        await trio.lowlevel.checkpoint()
        return authorise(access)

    container = Container(authorise=authorise_later if is_async else authorise)
    async with as_user(container, "ada") as conn:
        async with conn.open_sender("q") as sender:
            await sender.send("x")
        with pytest.raises(LinkRefusedError, match="'ada' may not send to 'secret'") as refused:
            async with conn.open_sender("secret"):
                pass
        assert refused.value.condition == "amqp:unauthorized-access"
        with pytest.raises(LinkRefusedError, match="'ada' may not receive from 'secret'"):
            async with conn.open_receiver("secret"):
                pass
        with pytest.raises(LinkRefusedError, match="'ada' may not have a node made"):
            async with conn.open_receiver(None, source=Source(dynamic=True)):
                pass
        with pytest.raises(LinkRefusedError, match="may not have a node made"):
            async with conn.open_sender(None, target=Target(dynamic=True)):
                pass
        with pytest.raises((TransactionError, LinkRefusedError), match="may not declare transactions"):
            async with conn.open_transaction():
                pass
        with pytest.raises(LinkRefusedError, match=r"may not send to 'aaa.*'\.\.\.") as refused:
            async with conn.open_sender("a" * 400):
                pass
    assert list(container.nodes) == [
        "q"
    ]  # a peer without the right learns nothing about a node, and creates none


@pytest.mark.parametrize("is_async", [False, True])
async def test_connection_is_closed_when_it_is_not_permitted(is_async: bool) -> None:
    def authorise(access: Access) -> bool:
        return access.user == "ada"

    async def authorise_later(access: Access) -> bool:
        await trio.lowlevel.checkpoint()
        return authorise(access)

    container = Container(authorise=authorise_later if is_async else authorise)
    async with as_user(container, "ada") as conn, conn.open_sender("q") as sender:
        await sender.send("x")
    with pytest.raises(ConnectionClosedError, match="not authenticated may not have a connection") as closed:
        async with as_user(container) as conn, conn.open_sender("q"):
            pass
    assert closed.value.condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("permitted", [True, False])
async def test_links_wait_while_the_connection_is_being_decided(
    permitted: bool, autojump_clock: MockClock
) -> None:
    """Until then no link is checked or answered, and no message reaches a node."""
    asked: list[str] = []
    done: list[str] = []
    decided = trio.Event()

    async def authorise(access: Access) -> bool:
        asked.append(access.action)
        if access.action == "open":
            await decided.wait()
            return permitted
        return True

    async def send(conn: amqp.Connection) -> None:
        try:
            async with conn.open_sender("q") as sender:
                done.append("attached")
                await sender.send("x")
                done.append("sent")
        except ConnectionClosedError as refusal:
            done.append(str(refusal.condition))

    container = Container(authorise=authorise)
    queue = container.add_queue("q")
    async with as_user(container) as conn, trio.open_nursery() as nursery:
        nursery.start_soon(send, conn)
        await trio.sleep(10)
        assert (asked, done, list(queue.inlets), len(queue)) == (["open"], [], [], 0)
        decided.set()
        await trio.sleep(10)
        if permitted:
            assert (asked, done, len(queue)) == (["open", "send"], ["attached", "sent"], 1)
        else:
            assert (asked, done, len(queue)) == (["open"], ["amqp:unauthorized-access"], 0)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.logs_errors
async def test_hook_that_raises_refuses_and_is_logged(
    is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def authorise(access: Access) -> bool:
        if access.action != "open":
            raise ValueError("the directory is down")
        return True

    async def authorise_later(access: Access) -> bool:
        return authorise(access)

    container = Container(authorise=authorise_later if is_async else authorise)
    async with as_user(container, "ada") as conn:
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_sender("q"):
                pass
    assert refused.value.condition == "amqp:internal-error"
    assert "directory" not in str(refused.value)
    assert "the directory is down" in caplog.text
    assert [text.partition(", identity=")[0] for text in caplog.messages] == [
        "authorise failed for Access(action='send', address='q'"
    ]


async def test_hook_refuses_with_its_own_condition_and_text_when_it_raises_a_refused_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def authorise(access: Access) -> bool:
        if access.address == "q":
            raise RefusedError("app:closed", "come back on Monday")
        return True

    async with as_user(Container(authorise=authorise)) as conn:
        with pytest.raises(LinkRefusedError, match="come back on Monday") as refused:
            async with conn.open_sender("q"):
                pass
    assert refused.value.condition == "app:closed"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def fault(answer: Any) -> Any:
    return pytest.param(answer, marks=pytest.mark.logs_errors)


@pytest.mark.parametrize("answer", [None, False, fault(1), fault("yes"), fault([True])])
async def test_hook_permits_nothing_when_it_returns_anything_but_true(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container(authorise=lambda access: access.action == "open" or answer)
    caplog.set_level(logging.INFO, "trio_amqp10.container")
    async with as_user(container) as conn:
        with pytest.raises(LinkRefusedError):
            async with conn.open_sender("q"):
                pass
    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    if answer is None or answer is False:
        assert errors == []
    else:
        [error] = errors
        assert error.startswith(f"authorise returned {answer!r} for Access(action='send', address='q', ")
        assert error.endswith(", which refuses: only True permits")
    assert (
        "a peer that is not authenticated may not send to 'q' (its container-id is 'client')"
        in caplog.messages
    )


async def test_link_that_ended_before_the_decision_is_ignored(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def authorise(access: Access) -> bool:
        if access.action == "send":
            await trio.sleep(5)
        return True

    container = Container(authorise=authorise)
    async with as_user(container) as conn:
        with trio.move_on_after(1) as scope:
            async with conn.open_sender("q"):
                pass
        assert scope.cancelled_caught
        await trio.sleep(10)
        assert container.nodes == {}
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_attach_without_a_terminus_is_refused_as_before_when_there_is_a_hook() -> None:
    container = Container(authorise=lambda access: True)
    async with as_user(container) as conn:
        with pytest.raises(LinkRefusedError, match="has no address"):
            async with conn.open_receiver(None):
                pass


# -- on somebody's behalf


@pytest.mark.parametrize("reply_to", ["secret", "mine"])
async def test_reply_is_sent_only_to_addresses_at_which_the_requester_may_send(reply_to: str) -> None:
    container = Container(authorise=lambda access: access.address != "secret")
    container.add_queue("secret")
    container.add_queue("mine")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    async with as_user(container, "ada") as conn, conn.open_sender("upper") as sender:
        await sender.send(amqp.Message("x", reply_to=reply_to))
    assert len(queue_of(container, reply_to)) == (reply_to == "mine")


async def test_service_itself_may_send_anywhere() -> None:
    container = Container(authorise=lambda access: False)
    container.add_queue("q")
    await container.send("q", "x")
    assert len(queue_of(container)) == 1


async def test_node_made_for_one_connection_is_asked_for_by_another() -> None:
    container = Container(authorise=lambda access: access.action in ("open", "create"))
    async with as_user(container, "ada") as ada, as_user(container, "bob") as bob:
        async with ada.open_receiver(None, source=Source(dynamic=True)) as replies:
            with pytest.raises(LinkRefusedError):
                async with bob.open_sender(replies.address):
                    pass
            address = replies.address
        with pytest.raises(LinkRefusedError) as refused:
            async with ada.open_sender(address):  # gone, and not its own any more
                pass
        assert refused.value.condition == "amqp:unauthorized-access"


# -- asked again


@pytest.mark.parametrize("is_async", [False, True])
async def test_review_detaches_links_that_are_not_permitted_any_more(is_async: bool) -> None:
    banned: set[str | None] = set()

    def authorise(access: Access) -> bool:
        return access.address not in banned

    async def authorise_later(access: Access) -> bool:
        await trio.lowlevel.checkpoint()
        return authorise(access)

    container = Container(authorise=authorise_later if is_async else authorise)
    async with as_user(container, "ada") as conn:
        async with (
            conn.open_sender("q") as sender,
            conn.open_receiver("q") as receiver,
            conn.open_sender("r") as other,
        ):
            banned.add("q")
            container.review()
            with pytest.raises(LinkDetachedError, match="'ada' may not receive from 'q'") as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:unauthorized-access"
            await wait_all_tasks_blocked()
            with pytest.raises(LinkDetachedError):
                await sender.send("x")
            await other.send("y")
        container.review()
        await wait_all_tasks_blocked()


async def test_review_asks_for_the_links_that_there_are_and_not_for_nodes_that_were_made() -> None:
    asked: list[tuple[str, str | None]] = []
    reviewing = False

    def authorise(access: Access) -> bool:
        asked.append((access.action, access.address))
        return not reviewing or access.address == "create"

    container = Container(authorise=authorise)
    async with (
        as_user(container, "ada") as conn,
        conn.open_receiver(None, source=Source(dynamic=True)) as replies,
        conn.open_sender("create"),
    ):
        async with conn.open_sender("q"):
            pass
        asked.clear()
        reviewing = True
        container.review()
        await wait_all_tasks_blocked()
        assert asked == [("send", "create")]
        async with conn.open_sender(replies.address) as sender:
            await sender.send("x")
        assert await bodies(replies, 1) == ["x"]


async def test_link_that_is_detached_by_a_review_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    permitted = True
    container = Container(authorise=lambda access: permitted)
    async with as_user(container, "ada") as conn, conn.open_receiver("q") as receiver:
        caplog.set_level(logging.DEBUG, "trio_amqp10.container")
        permitted = False
        container.review()
        with pytest.raises(LinkDetachedError):
            await receiver.receive()
    [said] = [text for text in caplog.messages if " is not permitted any more: " in text]
    link, _, why = said.partition(" is not permitted any more: ")
    assert link.startswith("<")
    assert "'ada' may not receive from 'q'" in why


# -- what a peer that may not is told


def test_refusal_names_the_user_the_action_and_the_address() -> None:
    anonymous = "a peer that is not authenticated may not"
    assert access("create").refusal() == f"{anonymous} have a node made (permission 'create')"
    assert access("open", None).refusal() == f"{anonymous} have a connection (permission 'open')"
    assert access("transact", None).refusal() == f"{anonymous} declare transactions (permission 'transact')"
    assert access("send", "a" * 64, "ada").refusal() == f"'ada' may not send to '{'a' * 64}'"
    assert access("send", "a" * 65, "ada").refusal() == f"'ada' may not send to '{'a' * 64}'..."


# -- rules


@pytest.mark.parametrize(
    ("action", "address", "user", "permitted"),
    [
        ("open", None, "ada", True),
        ("open", None, "eve", False),
        ("open", None, None, False),
        ("send", "orders", "ada", True),
        ("send", "orders/new", "ada", False),
        ("receive", "orders", "ada", False),
        ("receive", "prices/oil", "ada", True),
        ("receive", "prices", "ada", False),
        ("create", None, "ada", True),
        ("transact", None, "ada", False),
        ("send", "anything", "root", True),
        ("send", "$management", "root", False),
        ("receive", "$management", "admin", True),
        ("send", "$management/x", "admin", False),
        ("send", "$system/x", "system", True),
    ],
)
def test_rules_permit_the_listed_actions_and_no_other(
    action: str, address: str | None, user: str | None, permitted: bool
) -> None:
    rules = Rules(
        ("ada", "send", "orders"),
        ("ada", "receive", "prices/* notes"),
        ("ada", "create"),
        ("root", "send receive", "*"),
        ("admin", "send receive", "$management"),
        ("system", "send", "$system/*"),
    )
    assert rules(access(action, address, user)) is permitted
    assert repr(rules) == "<Rules for 4 users>"


def test_rules_to_create_and_delete_without_addresses_permit_all() -> None:
    rules = Rules(
        ("ada", "create", "ada/*"), ("ada", "delete", "ada/old"), ("bob", "create"), ("eve", "send", "*")
    )
    for action, address, permitted in (
        ("create", "ada/q", {"ada", "bob"}),
        ("create", "bob/q", {"bob"}),
        ("create", "/exchanges/ada", {"bob"}),
        ("create", "$cbs", set[str]()),
        ("create", None, {"ada", "bob"}),  # the container makes up the name
        ("delete", "ada/old", {"ada"}),
        ("delete", "ada/q", set[str]()),
    ):
        assert {user for user in ("ada", "bob", "eve") if rules(access(action, address, user))} == permitted


def test_rules_for_every_peer_apply_to_anonymous_peers_and_to_users_of_other_rules() -> None:
    rules = Rules(("*", "receive", "news"), ("ada", "send", "news"))
    for user in (None, "ada", "eve"):
        assert rules(access("open", None, user))
        assert rules(access("receive", "news", user))
        assert rules(access("send", "news", user)) is (user == "ada")


_FORM = "is no rule: expected (user, actions, addresses), as in ('ada', 'send receive', 'orders/*')"
_PARTS = ": expected a user, and any of open, send, receive, create, delete, transact, monitor, manage"
_WHERE = ": expected addresses to send to or receive from, or * for all of them"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ((), _FORM),
        (("ada",), _FORM),
        (("ada", "send"), _WHERE),
        (("ada", "receive"), _WHERE),
        (("ada", "", "q"), _PARTS),
        (("", "send", "q"), _PARTS),
        (("ada", "sned", "q"), _PARTS),
        (("ada", "send", " "), _WHERE),
        (("ada", "send", "q", "more"), _FORM),
        (("ada", ["send"], "q"), _FORM),
    ],
)
def test_malformed_rule_is_refused(rule: Any, why: str) -> None:
    with pytest.raises(LocalProtocolError, match=re.escape(f"{rule!r}") + " ?" + re.escape(why) + "$"):
        Rules(rule)


async def test_container_applies_its_rules() -> None:
    container = Container(authorise=Rules(("ada", "send", "q"), ("*", "receive", "q")))
    async with as_user(container, "ada") as ada, as_user(container) as nobody:
        async with ada.open_sender("q") as sender:
            await sender.send("x")
        async with nobody.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]
        with pytest.raises(LinkRefusedError, match="a peer that is not authenticated may not send to 'q'"):
            async with nobody.open_sender("q"):
                pass
