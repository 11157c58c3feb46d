"""Requests to ``$management``, and to ``/management`` of the RabbitMQ emulator: the permissions of what they do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.testing.rabbitmq_emulator.helpers import asking
from trio_amqp10.container import Container
from trio_amqp10.container.management.management_node import ManagementNode
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ
from trio_amqp10.testing.rabbitmq_emulator.management_requests import Management as RabbitManagement

from .rights_scripts import GONE, HERE, rights_of
from .test_rights import LATER, Permissions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rights_scripts import Right


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request, and what it needs besides permission to use the node; as ``Row`` of ``rights_scripts``."""

    operation: str
    rights: tuple[str, ...]
    one: bool = False
    asked: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    works_with: str = HERE
    hides: bool = True
    broker: bool = False

    def __str__(self) -> str:
        return f"{self.operation} {self.asked} {self.body}".replace("{}", "").replace("None", "").strip()

    def needs(self, name: str) -> list[Right]:
        """The permissions for the node of this name."""
        return rights_of(each.replace("NAME", name) for each in self.rights)


_ANY = "receive NAME", "send NAME", "create NAME", "delete NAME", "monitor NAME", "manage NAME"
_NAMED = {"name": "NAME"}
_QUEUE = {"type": "queue", "name": "NAME"}
_EXCHANGE = {"type": "exchange", "name": "NAME"}
_BINDING = {"source": "amq.topic", "destination": "letters", "key": "k"}
REQUESTS = [
    Request(operation="CREATE", rights=("create NAME",), asked=_QUEUE, works_with=GONE),
    Request(operation="CREATE", rights=("create NAME",), asked={**_QUEUE, "type": "topic"}, works_with=GONE),
    Request(operation="CREATE", rights=("create NAME", "receive NAME", "send letters"), asked=_QUEUE, body={"dead-letter": "letters"}, works_with=GONE),
    Request(operation="UPDATE", rights=("create NAME",), asked=_NAMED, body={"max-length": 5}),
    Request(operation="UPDATE", rights=("create NAME", "receive NAME", "send letters"), asked=_NAMED, body={"dead-letter": "letters"}),
    Request(operation="READ", rights=_ANY, one=True, asked=_NAMED),
    Request(operation="DELETE", rights=("delete NAME",), asked=_NAMED),
    *(
        Request(operation="QUERY", rights=(f"receive $management/{kind}",), asked={"entityType": kind}, hides=False)
        for kind in ("connection", "link", "account", "container")
    ),
    Request(operation="READ", rights=("receive $management/connection",), asked={"type": "connection", "identity": "1"}, hides=False),
    Request(operation="DELETE", rights=("delete $management/connection",), asked={"type": "connection", "identity": "1"}, hides=False),
    Request(operation="DECLARE", rights=("create NAME",), asked=_QUEUE, works_with=GONE),
    Request(operation="DECLARE", rights=("create /exchanges/NAME",), asked=_EXCHANGE, works_with=GONE),
    Request(operation="DELETE", rights=("delete /exchanges/NAME",), asked=_EXCHANGE, broker=True),
    Request(operation="ROUTE", rights=tuple(each.replace("NAME", "/exchanges/NAME") for each in _ANY), one=True, asked=_EXCHANGE, broker=True),
    Request(operation="BIND", rights=("send letters", "receive /exchanges/amq.topic/k"), body=_BINDING, hides=False, broker=True),
    Request(operation="BIND", rights=("manage letters", "manage /exchanges/amq.topic/#"), body=_BINDING, hides=False, broker=True),
    Request(operation="UNBIND", rights=("send letters", "receive /exchanges/amq.topic/k"), body=_BINDING, hides=False, broker=True),
    Request(operation="PURGE", rights=("receive NAME",), asked=_NAMED),
    Request(operation="BROWSE", rights=("receive NAME",), asked=_NAMED),
    Request(operation="GET", rights=("receive NAME",), asked=_NAMED),
    Request(operation="PUBLISH", rights=("send NAME",), asked=_NAMED, body={"message": amqp.Message("x").to_payload()}),
    Request(operation="MOVE", rights=("receive NAME", "send letters"), asked={**_NAMED, "target": "letters"}),
    Request(operation="REDRIVE", rights=("receive NAME",), asked=_NAMED),
    Request(operation="PURGE", rights=("manage NAME",), asked=_NAMED, body={"by": "manage"}),
    Request(operation="HOLD", rights=("manage NAME",), asked=_NAMED),
    Request(operation="REDIRECT", rights=("manage NAME",), asked=_NAMED),
    Request(operation="UPDATE", rights=("manage NAME", "manage letters"), asked=_NAMED, body={"dead-letter": "letters"}),
    Request(operation="DELETE", rights=("manage NAME",), asked=_NAMED),
]  # fmt: skip
FREE = {
    "EXPORT",
    "IMPORT",
    "GET-TYPES",
    "GET-ATTRIBUTES",
    "GET-OPERATIONS",
    "GET-ANNOTATIONS",
    "GET-MGMT-NODES",
}
"""Operations that show types, and no node; or that ask for each definition."""


def test_every_operation_has_a_row() -> None:
    container = Container()
    container.add_management()
    management = container.nodes["$management"]
    assert isinstance(management, ManagementNode)
    assert management._operations.keys() == FREE | {each.operation for each in REQUESTS}


async def answer_to(
    request: Request, permitted: Iterable[Right], name: str, *, later: bool
) -> tuple[int, Any, Any]:
    """Status and body of the reply, and what the container has afterwards."""
    permissions = Permissions([("send", "$management"), ("receive", "$management"), *permitted], later=later)
    container = Container(authorise=permissions)
    container.add_management()
    container.add_queue(HERE)
    container.add_queue("letters")
    if request.broker:
        container.add_broker().declare_exchange(HERE, durable=False)
    asked = {each: str(value).replace("NAME", name) for each, value in request.asked.items()}
    async with (
        container.connect(),
        container.connect() as connection,
        connection.open_requester("$management") as requester,
    ):
        message = amqp.Message(request.body, application_properties={"operation": request.operation, **asked})
        reply = await requester.request(message)
        said: Any = reply.application_properties
        nodes = {each: getattr(node, "policy", None) for each, node in container.nodes.items()}
        left = (
            len(container.connected),
            {each: rules for each, rules in nodes.items() if "temporary" not in each},
        )
    return int(said["statusCode"]), said["statusDescription"], (left, permissions.asked)


@LATER
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
async def test_operation_works_with_its_permissions(
    request_: Request, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    needed = request_.needs(request_.works_with)
    for permitted in [[each] for each in needed] if request_.one else [needed]:
        status, text, _ = await answer_to(
            request_, [*permitted, ("create", None)], request_.works_with, later=later
        )
        assert status < 300, text


@LATER
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
async def test_operation_is_refused_without_any_one_of_its_permissions(
    request_: Request, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    needed = request_.needs(request_.works_with)
    for lacking in [needed] if request_.one else [[each] for each in needed]:
        permitted = [each for each in needed if each not in lacking]
        status, _, ((connections, nodes), _) = await answer_to(
            request_, [*permitted, ("create", None)], request_.works_with, later=later
        )
        assert status == 403
        assert connections == 2
        assert (GONE in nodes, nodes[HERE].max_length) == (False, None)


@LATER
@pytest.mark.parametrize("request_", [each for each in REQUESTS if each.hides], ids=str)
async def test_refusal_does_not_tell_what_exists(
    request_: Request, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    answers = []
    for name in (HERE, GONE):
        began = trio.current_time()
        status, text, (_, asked) = await answer_to(request_, [("create", None)], name, later=later)
        told = repr((status, text, asked)).replace(name, "NAME")
        answers.append((told, trio.current_time() - began))
    assert answers[0] == answers[1]


@LATER
async def test_list_of_nodes_has_those_that_the_peer_may_do_something_with(
    later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    rights: list[Right] = [("send", "a"), ("delete", "c"), ("receive", "d"), ("create", None)]
    permissions = Permissions([("send", "$management"), ("receive", "$management"), *rights], later=later)
    container = Container(authorise=permissions)
    container.add_management()
    for name in "abcd":
        container.add_queue(name)
    async with container.connect() as connection, connection.open_requester("$management") as requester:
        found = []
        for offset in (0, 2):
            request = amqp.Message(
                {"attributeNames": ["name"]},
                application_properties={"operation": "QUERY", "entityType": "queue", "offset": offset},
            )
            body = (await requester.request(request)).body
            found.append([row[0] for row in body["results"] if not row[0].startswith("temporary/")])
    assert found[0] == ["a", "c", "d"]
    assert found[1][:1] == ["d"]


@pytest.mark.parametrize("name", ["$cbs", "amq.mine", "temporary/x", "/exchanges/x"])
async def test_management_makes_no_node_of_a_reserved_name(name: str) -> None:
    container = Container()
    container.add_management()
    async with container.connect() as connection, connection.open_requester("$management") as requester:
        asked = {"operation": "CREATE", "type": "queue", "name": name}
        reply = await requester.request(amqp.Message(None, application_properties=asked))
        assert reply.application_properties["statusCode"] == 403


# -- the RabbitMQ emulator ------------------------------------------------------------------

_DECLARED = {"durable": True}
_BOUND = {"source": "events", "destination_queue": "NAME", "binding_key": "a", "arguments": {}}
_TO = "src=events;dstq=NAME;key=a;args="
RABBIT: list[tuple[str, str, Any, tuple[str, ...], bool]] = [
    ("PUT", "/queues/NAME", _DECLARED, ("create /queues/NAME",), False),
    ("GET", "/queues/NAME", None, ("receive /queues/NAME", "send /queues/NAME", "create /queues/NAME", "delete /queues/NAME"), True),
    ("DELETE", "/queues/NAME", None, ("delete /queues/NAME",), False),
    ("DELETE", "/queues/NAME/messages", None, ("receive /queues/NAME",), False),
    ("PUT", "/exchanges/NAME", {"type": "topic"}, ("create /exchanges/NAME",), False),
    ("DELETE", "/exchanges/NAME", None, ("delete /exchanges/NAME",), False),
    ("POST", "/bindings", _BOUND, ("send /queues/NAME", "receive /exchanges/events/a"), False),
    ("GET", "/bindings?src=events&dstq=NAME&key=a", None, ("send /queues/NAME", "receive /exchanges/events/a"), False),
    ("DELETE", f"/bindings/{_TO}", None, ("send /queues/NAME", "receive /exchanges/events/a"), False),
]  # fmt: skip


def test_every_request_of_the_emulator_has_a_row() -> None:
    management = RabbitMQ().container.nodes["/management"]
    assert isinstance(management, RabbitManagement)
    rows = {(method, *path_of(path)) for method, path, _, _, _ in RABBIT}
    assert management._routes.keys() == rows


def path_of(path: str) -> tuple[str, int]:
    parts = path.partition("?")[0].split("/")[1:]
    return parts[0], len(parts)


async def answer_of_rabbit(
    request: tuple[str, str, Any], permitted: Iterable[Right], name: str
) -> tuple[int, Any, list[Right]]:
    permissions = Permissions([("send", "/management"), ("receive", "/management"), *permitted], later=False)
    rabbit = RabbitMQ()
    rabbit.container.authorise = permissions
    rabbit.declare_queue(HERE)
    rabbit.declare_exchange(HERE, "topic")
    rabbit.declare_exchange("events", "topic")
    method, path, body = request
    if isinstance(body, dict):
        body = {
            key: value.replace("NAME", name) if isinstance(value, str) else value
            for key, value in body.items()
        }
    async with rabbit.container.connect() as connection, asking(connection) as ask:
        status, answer = await ask(method, path.replace("NAME", name), body)
    return status, answer, permissions.asked


@pytest.mark.parametrize(("method", "path", "body", "rights", "one"), RABBIT, ids=str)
async def test_request_to_the_emulator_needs_its_permissions(
    method: str, path: str, body: Any, rights: tuple[str, ...], one: bool
) -> None:
    request = method, path, body
    needed = rights_of(each.replace("NAME", HERE) for each in rights)
    for permitted in [[each] for each in needed] if one else [needed]:
        status, answer, _ = await answer_of_rabbit(request, permitted, HERE)
        assert status < 300, answer
    for lacking in [needed] if one else [[each] for each in needed]:
        status, _, _ = await answer_of_rabbit(request, [each for each in needed if each not in lacking], HERE)
        assert status == 403
    told = {repr(await answer_of_rabbit(request, [], name)).replace(name, "NAME") for name in (HERE, GONE)}
    assert len(told) == 1
