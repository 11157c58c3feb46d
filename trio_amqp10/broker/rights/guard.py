"""The guard of one connection: asks for permissions, and reviews them later.

An answer may come at once, or take a task; in both cases the operation continues, or is refused, from a callback. A hook that
raises refuses with ``amqp:internal-error``, and a hook that returns anything but True refuses too: nothing is permitted by
mistake.

A permission stays valid until there is a reason to ask again: a claim has expired, or the service requests it. Then each link
is asked for once more.

Knows peers and links by their interface; knows no dialect, and no kind of node.
"""

from __future__ import annotations

import inspect
import logging
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

from .access import Access, Action

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable

    from .access import Authorise
    from .claims import Claim
    from .rights_holder import Subject

_log = logging.getLogger("trio_amqp10.container")

_FAILED: Final = RefusedError(
    Condition.INTERNAL_ERROR, "the permission could not be checked: try again later"
)

Wish = tuple[Action, str | None]
"""An action that a peer wants to do, and the address of the node, or None."""

Need = tuple[Wish, ...]
"""Alternative permissions, asked for in this order until one is given."""

_Steps: TypeAlias = "Generator[tuple[Awaitable[Any], Access], RefusedError | None, RefusedError | None]"


class Guard:
    """Asks for permissions on behalf of one connection.

    Args:
        peer: the connected peer.
        hook: answers; None permits all.
        resolve: returns the address that another one stands for.
        needs_no_permission: whether every connected peer may use the node of an address.

    Attributes:
        pending_answers: questions about messages without an answer: no transaction is discharged meanwhile.
    """

    def __init__(
        self,
        peer: Subject,
        hook: Authorise | None,
        resolve: Callable[[str], str],
        needs_no_permission: Callable[[Subject, str], bool],
    ) -> None:
        self.pending_answers = 0
        self._peer_ref = weakref.ref(peer)  # The peer owns this: a strong reference would be a cycle.
        self._hook = hook
        self._resolve = resolve
        self._needs_no_permission = needs_no_permission
        self._own: dict[str, None] = {}  # A set is three times as large.
        self._permitted: dict[Any, Wish] = {}
        self._claims: dict[str, tuple[Claim, trio.CancelScope]] = {}
        self._closed = False

    @property
    def _peer(self) -> Subject:
        peer = self._peer_ref()
        if peer is None:
            raise ReferenceError("the connection is over and forgotten")
        return peer

    @property
    def asks(self) -> bool:
        """Whether anything can be refused."""
        return self._hook is not None

    # -- asking -----------------------------------------------------------------------------

    def ask(self, wish: Wish | None, then: Callable[[RefusedError | None], object]) -> None:
        """Ask for one permission; call ``then`` with the refusal, or with None.

        ``then`` is called now, or in a task.
        """
        access = self._access(wish)
        answer = None if access is None else self._begin(access)
        if answer is None or isinstance(answer, RefusedError):
            then(answer)
        else:
            assert access is not None
            # The task goes on even if the peer disconnects meanwhile.
            self._peer.start_soon(self._ask, answer, access, then)

    async def check(self, action: Action, address: str | None) -> None:
        """Raise ``RefusedError`` if this is not permitted.

        Cancelled: the answer is not known.
        """
        access = self._access((action, address))
        if access is None:
            return
        answer = self._begin(access)
        if answer is not None and not isinstance(answer, RefusedError):
            answer = await self._finish(answer, access)
        if answer is not None:
            raise answer

    async def _ask(
        self, answer: Awaitable[Any], access: Access, then: Callable[[RefusedError | None], object]
    ) -> None:
        then(await self._finish(answer, access))

    def ask_all(
        self,
        needs: Iterable[Need],
        then: Callable[[RefusedError | None], object],
        on_permitted: Callable[[Wish], object],
    ) -> None:
        """Ask for one permission of each need, one after the other.

        ``then`` is called as for ``ask``, with the first refusal. The questions depend on the needs and the answers only, never on the
        nodes that exist.

        Args:
            needs: all of them are needed.
            then: called once, now or in a task.
            on_permitted: called with each permission that was given in answer to a question.
        """
        steps = self._steps(needs, on_permitted)
        try:
            pending = next(steps)
        except StopIteration as done:
            refusal = done.value
        else:
            self._peer.start_soon(self._ask_on, steps, pending, then)
            return
        then(refusal)

    async def _ask_on(
        self,
        steps: _Steps,
        pending: tuple[Awaitable[Any], Access],
        then: Callable[[RefusedError | None], object],
    ) -> None:
        while True:
            answer = await self._finish(*pending)
            try:
                pending = steps.send(answer)
            except StopIteration as done:
                refusal = done.value
                break
        then(refusal)

    def _steps(self, needs: Iterable[Need], on_permitted: Callable[[Wish], object]) -> _Steps:
        """Yield each answer that must be awaited; return the refusal, if any."""
        for need in needs:
            first: RefusedError | None = None
            for wish in need:
                access = self._access(wish)
                if access is None:
                    break
                answer = self._begin(access)
                if answer is not None and not isinstance(answer, RefusedError):
                    answer = yield answer, access
                if answer is None:
                    on_permitted(wish)
                    break
                first = first or answer
            else:
                return first
        return None

    async def check_all(self, *needs: Need) -> None:
        """Raise ``RefusedError`` unless one permission of each need is given.

        Cancelled: the answer is not known.
        """
        steps = self._steps(needs, _ignore)
        try:
            pending = next(steps)
            while True:
                pending = steps.send(await self._finish(*pending))
        except StopIteration as done:
            refusal = done.value
        if refusal is not None:
            raise refusal

    def is_free(self, address: str) -> bool:
        """Whether the peer needs no permission for this address.

        That holds for its own nodes, and for nodes that every connected peer may use.
        """
        address = self._resolve(address)
        return address in self._own or self._needs_no_permission(self._peer, address)

    def _begin(self, access: Access) -> RefusedError | Awaitable[Any] | None:
        assert self._hook is not None
        try:
            answer = self._hook(access)
        except Exception as failure:
            return _failed(failure, access)
        return answer if inspect.isawaitable(answer) else _judge(answer, access)

    async def _finish(self, answer: Awaitable[Any], access: Access) -> RefusedError | None:
        try:
            return _judge(await answer, access)
        except Exception as failure:
            return _failed(failure, access)

    def _access(self, wish: Wish | None) -> Access | None:
        """Return the question, or None if it need not be asked."""
        if self._hook is None or wish is None:
            return None
        action, address = wish
        if address is not None:
            address = self._resolve(address)
            if address in self._own or self._needs_no_permission(self._peer, address):
                return None
        peer = self._peer
        return Access(
            action=action,
            address=address,
            identity=peer.identity,
            container_id=peer.container_id,
            claims=self.claims,
        )

    # -- given permissions ------------------------------------------------------------------

    def own(self, address: str) -> None:
        """Permit the use of a node that was made for this connection."""
        self._own[address] = None

    def disown(self, address: str) -> None:
        """Forget a node that was made for this connection."""
        self._own.pop(address, None)

    def remember(self, link: Any, wish: Wish | None) -> None:
        """Remember a link, which exists because of this permission."""
        if self._hook is not None and wish is not None and wish[0] != "create":
            self._permitted[link] = wish

    def forget(self, link: Any) -> None:
        """Forget a link that has ended."""
        self._permitted.pop(link, None)

    def review(self) -> None:
        """Ask again for all links, and detach those that are refused now."""
        for link, wish in list(self._permitted.items()):
            self.ask(wish, partial(self._retain, link))

    def _retain(self, link: Any, refusal: RefusedError | None) -> None:
        if refusal is not None and link in self._permitted:
            _log.debug("%r is not permitted any more: %s", link, refusal)
            link.close(refusal.condition, refusal.description)

    # -- claims -----------------------------------------------------------------------------

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that are valid now."""
        return tuple([claim for claim, _ in self._claims.values()]) if self._claims else ()

    def add_claim(self, claim: Claim, seconds: float | None) -> None:
        """Add the claim of a verified token, which replaces one for the same audience.

        ``seconds`` is the time until it expires; None for never.
        """
        if self._closed:
            return
        before = self._claims.pop(claim.audience, None)
        scope = trio.CancelScope()
        self._claims[claim.audience] = claim, scope
        if seconds is not None:
            # Not by ``start_soon`` of the peer: the service must not wait for claims when it ends.
            assert self._peer.nursery is not None
            self._peer.nursery.start_soon(self._expire, claim, scope, seconds)
        if before is not None:
            before[1].cancel()
            if before[0].rights - claim.rights:
                self.review()

    async def _expire(self, claim: Claim, scope: trio.CancelScope, seconds: float) -> None:
        with scope:
            await trio.sleep(seconds)
            del self._claims[claim.audience]
            _log.debug("%r: the claim for %r has ended", self._peer.container_id, claim.audience)
            self.review()

    def close(self) -> None:
        """Drop all claims: the connection has ended."""
        self._closed = True
        for _, scope in self._claims.values():
            scope.cancel()
        self._claims.clear()


def _ignore(_wish: Wish) -> None: ...


def _judge(answer: object, access: Access) -> RefusedError | None:
    if answer is True:
        return None
    if answer is not False and answer is not None:
        _log.error("authorise returned %r for %r, which refuses: only True permits", answer, access)
    refusal = access.refusal()
    _log.info("%s (its container-id is %r)", refusal, access.container_id)
    return RefusedError(Condition.UNAUTHORIZED_ACCESS, refusal)


def _failed(failure: Exception, access: Access) -> RefusedError:
    if isinstance(failure, RefusedError):
        return failure
    _log.error("authorise failed for %r", access, exc_info=failure)
    return _FAILED
