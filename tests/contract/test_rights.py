"""What a peer may do is asked for with the address, before anything is looked up: one table of method and permission.

For each row of each protocol: with exactly its permissions it works; without any one of them it is refused and nothing has
changed; and a peer without any cannot tell by the answer what exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.container import Container

from .protocols import PROTOCOLS
from .rights_scripts import GONE, HERE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from trio_amqp10.broker.rights.access import Access

    from .protocols import ProtocolUnderTest
    from .rights_scripts import Right, Row

CASES = [(protocol, row) for protocol in PROTOCOLS.values() for row in protocol.rights.rows]
IDS = [f"{protocol.name} {row}" for protocol, row in CASES]
HIDING = [case for case in CASES if case[1].hides]

ALTERNATIVES = [("receive", f"/exchanges/{name}/#") for name in (HERE, "events", "all")]
"""Everything from an exchange is asked for before the key of one binding."""

LATER = pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])


class Permissions:
    """Permits what is in a set, and notes what is asked.

    Args:
        permitted: what is permitted besides a connection.
        later: whether the answers take a task.
    """

    def __init__(self, permitted: Iterable[Right], *, later: bool) -> None:
        self.permitted = set(permitted)
        self.asked: list[Right] = []
        self._later = later

    def __call__(self, access: Access) -> bool | Awaitable[bool]:
        if access.action == "open":
            return True
        right = access.action, access.address
        self.asked.append(right)
        return self._answer(right) if self._later else right in self.permitted

    async def _answer(self, right: Right) -> bool:
        await trio.sleep(1)
        return right in self.permitted


def world(permissions: Permissions) -> Container:
    """A container with what the rows are about."""
    container = Container("guarded", authorise=permissions)
    broker = container.add_broker()
    for name in (HERE, "other", "copy"):
        broker.declare_queue(name)
    for name in (f"{HERE}s/1", f"{HERE}s/2"):
        container.add_queue(name)
    for name, kind in (("events", "topic"), ("all", "fanout"), (HERE, "topic")):
        broker.declare_exchange(name, kind)
    broker.bind("events", "queue", "copy", "#")
    return container


def contents(container: Container) -> Any:
    """Everything that a method may change."""
    broker = container.broker
    assert broker is not None
    nodes = {
        address: (node.available, len(node.outlets)) if isinstance(node, Queue) else None
        for address, node in container.nodes.items()
    }
    return nodes, sorted(map(repr, broker.bindings))


async def outcome(
    protocol: ProtocolUnderTest, row: Row, permitted: Iterable[Right], name: str, *, later: bool
) -> tuple[Any, Permissions, bool]:
    """The answer of the server, what it asked, and whether anything changed while the client was there."""
    permissions = Permissions(permitted, later=later)
    container = world(permissions)
    before = contents(container)
    async with protocol.rights.dial(container) as client:
        answer = await row.run(client, name)
        changed = contents(container) != before
    return answer, permissions, changed


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_every_method_has_a_row_or_needs_no_permission(protocol: ProtocolUnderTest) -> None:
    rights = protocol.rights
    rows = {row.method for row in rights.rows}
    assert rights.methods == rows | rights.free.keys()
    assert not rows & rights.free.keys()


@LATER
@pytest.mark.parametrize(("protocol", "row"), CASES, ids=IDS)
async def test_method_works_with_its_permissions_and_asks_for_no_others(
    protocol: ProtocolUnderTest, row: Row, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    needed = row.needs(row.works_with)
    for permitted in [[each] for each in needed] if row.one else [needed]:
        answer, permissions, _ = await outcome(protocol, row, permitted, row.works_with, later=later)
        assert protocol.rights.done(answer), answer
        assert set(permitted) <= set(permissions.asked)
        assert row.one or row.below or set(permissions.asked) <= {*permitted, *ALTERNATIVES}


@LATER
@pytest.mark.parametrize(("protocol", "row"), CASES, ids=IDS)
async def test_method_is_refused_without_any_one_of_its_permissions(
    protocol: ProtocolUnderTest, row: Row, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    needed = row.needs(row.works_with)
    for lacking in [needed] if row.one else [[each] for each in needed]:
        permitted = [each for each in needed if each not in lacking]
        answer, permissions, changed = await outcome(protocol, row, permitted, row.works_with, later=later)
        assert protocol.rights.refused(answer), answer
        assert not changed
        assert set(lacking) <= set(permissions.asked)


@LATER
@pytest.mark.parametrize(("protocol", "row"), HIDING, ids=[f"{each.name} {row}" for each, row in HIDING])
async def test_answer_to_a_peer_without_permission_does_not_tell_what_exists(
    protocol: ProtocolUnderTest, row: Row, later: bool, autojump_clock: trio.testing.MockClock
) -> None:
    needed = row.needs("NAME")
    # With the permissions for everything but the thing itself, and with none at all.
    for permitted in ([each for each in needed if "NAME" not in str(each[1])], []):
        answers = []
        for name in (HERE, GONE):
            began = trio.current_time()
            answer, permissions, _ = await outcome(protocol, row, permitted, name, later=later)
            assert protocol.rights.refused(answer), answer
            seconds = trio.current_time() - began
            asked = [] if row.below else permissions.asked
            answers.append((repr((answer, asked)).replace(name, "NAME"), seconds))
        assert answers[0] == answers[1]
