"""Connections with the settings of the options, and reconnecting after a loss.

All dialling of this package is here, and the decision which failures are retried, and for how long.

Knows options and connections, not their use.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

import trio_amqp10 as amqp

from .amqp091_peer import is_091_loss, open_091
from .options import OptionError
from .token_sources import token_source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from .options import PeerOptions

_log = logging.getLogger("trio_amqp10.spark")

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_UNAUTHORIZED: Final = "amqp:unauthorized-access"
_FINAL: Final = frozenset(
    {
        "amqp:link:stolen",
        _UNAUTHORIZED,
        "amqp:not-allowed",
        "amqp:not-implemented",
        "amqp:invalid-field",
        "com.microsoft:argument-error",
        "com.microsoft:argument-out-of-range",
    }
)
"""Error conditions that another attempt would meet again."""
_NOT_FOUND: Final = "amqp:not-found"
"""Final at first, because the address is wrong.

After a success it may mean that the broker is still starting.
"""

T = TypeVar("T")


class GaveUpError(amqp.AmqpError):
    """The peer was out of reach or lost for longer than ``reconnect.timeout``."""


@asynccontextmanager
async def dial(options: PeerOptions) -> AsyncGenerator[amqp.Connection]:
    """Open one connection: ``async with dial(options) as connection``.

    Raises:
        OptionError: the options contradict each other, or the password cannot be read.
        OSError: the peer does not answer, or not in time.
        AmqpError: as ``open_connection``.

    Cancelled: the connection is closed.
    """
    source = token_source(options)
    with trio.move_on_after(options.connect_timeout) as patience:
        if source is not None and _logs_in_with_token(options):
            audience, tokens = source
            sasl, source = _bearing(options, (await tokens(audience)).value), None
        else:
            sasl = _mechanism(options)
        opening: AbstractAsyncContextManager[amqp.Connection] = (
            open_091(options, sasl or None) if options.is_091 else _opening(options, sasl)
        )
        async with opening as connection, AsyncExitStack() as stack:
            if source is not None:
                await stack.enter_async_context(connection.keep_token(*source))
            patience.deadline = float("inf")  # the limit is for opening, not for the use
            yield connection
    if patience.cancelled_caught:
        raise TimeoutError(f"{options.where} did not open a connection within {options.connect_timeout:g} s")


def _opening(options: PeerOptions, sasl: Any) -> AbstractAsyncContextManager[amqp.Connection]:
    return amqp.open_connection(
        options.dial_url(),
        container_id=options.container_id,
        sasl=sasl,
        allow_plaintext_password=options.allow_plaintext_password,
        cafile=options.tls_ca,
        certfile=options.tls_cert,
        keyfile=options.tls_key,
        idle_timeout=options.idle_timeout,
        max_frame_size=options.max_frame_size,
    )


_WITH_TOKEN: Final = frozenset({"OAUTHBEARER", "XOAUTH2", "PLAIN"})
"""The mechanisms that have a token.

With others it is put to the node ``$cbs`` after the login.
"""


def _logs_in_with_token(options: PeerOptions) -> bool:
    return options.token != "sas" and (options.sasl_mechanism or "").upper() in _WITH_TOKEN


def _bearing(options: PeerOptions, token: str) -> Any:
    """Return the mechanism that logs in with a token.

    The token is there before the connection, because a failure to get one may pass, and that of a login may not.
    """
    name, user = (options.sasl_mechanism or "").upper(), options.username or ""
    if name == "PLAIN":
        return amqp.sasl.Plain(user, token)

    async def fetch() -> str:
        return token

    bearer = amqp.sasl.OAuthBearer if name == "OAUTHBEARER" else amqp.sasl.XOAuth2
    return bearer(fetch, user)


def _mechanism(options: PeerOptions) -> Any:
    name = options.sasl_mechanism
    if name is None:
        return amqp.sasl.Anonymous() if options.has_tokens else None
    name = name.upper()
    if name == "NONE":
        return False
    if name == "ANONYMOUS":
        return amqp.sasl.Anonymous()
    if name == "EXTERNAL":
        return amqp.sasl.External()
    user = options.username or options.parsed.username
    if user is None:
        raise OptionError(f"option 'sasl.mechanism' is {name!r}, which needs option 'username'")
    if name == "PLAIN":
        return amqp.sasl.Plain(user, options.password() or "")
    if name.startswith("SCRAM-"):
        return amqp.sasl.Scram(user, options.password() or "", name)
    raise OptionError(
        f"option 'sasl.mechanism' is {name!r}: expected NONE, ANONYMOUS, EXTERNAL, PLAIN, the name of a SCRAM mechanism, or, with "
        "tokens, OAUTHBEARER or XOAUTH2"
    )


async def with_reconnects(
    options: PeerOptions,
    use: Callable[[amqp.Connection, Callable[[], None]], Awaitable[T]],
    connect: Callable[[PeerOptions], AbstractAsyncContextManager[amqp.Connection]] = dial,
) -> T:
    """Call ``use`` with a connection, and again with a new one after each loss.

    Args:
        options: the peer, and in ``reconnect_timeout`` the seconds without progress after which to give up.
        use: called with the connection, and with a function that it should call on each progress, which
            restarts the time. Its result is returned.
        connect: opens a connection.

    Raises:
        GaveUpError: there was no progress for too long.
        AmqpError, OSError: raised by ``use`` or ``connect``, for a reason that another attempt cannot change.

    Cancelled: the connection is closed.
    """
    deadline = trio.current_time() + options.reconnect_timeout
    pause = _FIRST_PAUSE
    came_through = False

    def progress() -> None:
        nonlocal deadline, pause, came_through
        deadline = trio.current_time() + options.reconnect_timeout
        pause = _FIRST_PAUSE
        came_through = True

    while True:
        try:
            async with connect(options) as connection:
                return await use(connection, progress)
        except (OSError, amqp.AmqpError, trio.BrokenResourceError) as loss:
            if not _is_loss(loss, came_through, expires=options.has_tokens):
                raise
            if trio.current_time() + pause > deadline:
                raise GaveUpError(
                    f"{options.where}: no success for {options.reconnect_timeout:g} s (reconnect.timeout): {loss}"
                ) from loss
            _log.warning("%s: %s; trying again in %.1f s", options.where, loss, pause)
        await trio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _is_loss(failure: BaseException, came_through: bool, *, expires: bool) -> bool:
    """Whether another attempt may succeed after this failure.

    A token may have expired (``expires``), and another attempt has a new one.
    """
    of_091 = is_091_loss(failure, came_through)
    if of_091 is not None:
        return of_091
    condition = getattr(getattr(failure, "error", None), "condition", None)
    if condition == _UNAUTHORIZED and expires and came_through:
        return True
    if condition in _FINAL or (condition == _NOT_FOUND and not came_through):
        return False
    gone = (amqp.ConnectionClosedError, amqp.SessionEndedError, amqp.LinkDetachedError)
    return isinstance(failure, gone) or (
        isinstance(failure, OSError) and not isinstance(failure, amqp.AmqpError)
    )


async def run_together(*jobs: Callable[[], Awaitable[object]]) -> None:
    """Run jobs concurrently until all have returned.

    The first job that fails cancels the others, and its exception is raised (not in a group).

    Cancelled: all jobs are cancelled.
    """
    failure: Exception | None = None

    async def run(job: Callable[[], Awaitable[object]]) -> None:
        nonlocal failure
        try:
            await job()
        except Exception as its_own:  # the nursery would wrap it in a group
            if failure is None:
                failure = its_own
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(run, job)
    if failure is not None:
        raise failure
