"""Connections as options want them, made anew when they are lost.

The one place of this package that dials; what is tried again, and for how long, is decided here.

Knows options and connections; what is done with those is the caller's business.
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

import trio_amqp10 as amqp

from .amqp091_peer import is_091_loss, open_091
from .options import OptionError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from .options import PeerOptions

__all__ = ["GaveUpError", "dial", "dialling", "in_one", "token_source"]

_log = logging.getLogger("trio_amqp10.spark")

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_FINAL: Final = frozenset(
    {
        "amqp:link:stolen",
        "amqp:unauthorized-access",
        "amqp:not-allowed",
        "amqp:not-implemented",
        "amqp:invalid-field",
        "com.microsoft:argument-error",
        "com.microsoft:argument-out-of-range",
    }
)
"""Conditions that another attempt would meet again."""
_NOT_FOUND: Final = "amqp:not-found"
"""At first a wrong address; later perhaps a broker that is not all there yet."""

T = TypeVar("T")


class GaveUpError(amqp.AmqpError):
    """The peer could not be reached, or was lost, for longer than ``reconnect.timeout``."""


@asynccontextmanager
async def dial(options: PeerOptions) -> AsyncGenerator[amqp.Connection]:
    """One connection: ``async with dial(options) as connection``.

    Raises:
        OptionError: the options contradict each other, or a password is not where it should be.
        OSError: nobody answers, or not in time.
        AmqpError: as ``open_connection``.

    Cancelled: what was dialled is closed.
    """
    opening: AbstractAsyncContextManager[amqp.Connection] = (
        open_091(options, _mechanism(options) or None) if options.is_091 else _opening(options)
    )
    with trio.move_on_after(options.connect_timeout) as patience:
        async with opening as connection, AsyncExitStack() as stack:
            source = token_source(options)
            if source is not None:
                await stack.enter_async_context(connection.keep_token(*source))
            patience.deadline = float("inf")  # from here on the caller decides
            yield connection
    if patience.cancelled_caught:
        raise TimeoutError(f"{options.where} did not open a connection within {options.connect_timeout:g} s")


def _opening(options: PeerOptions) -> AbstractAsyncContextManager[amqp.Connection]:
    return amqp.open_connection(
        options.dial_url(),
        container_id=options.container_id,
        sasl=_mechanism(options),
        allow_plaintext_password=options.allow_plaintext_password,
        cafile=options.tls_ca,
        certfile=options.tls_cert,
        keyfile=options.tls_key,
        idle_timeout=options.idle_timeout,
        max_frame_size=options.max_frame_size,
    )


def token_source(options: PeerOptions) -> tuple[str, amqp.SasTokens] | None:
    """What tokens are for, and where they come from; None where none are wanted.

    Raises:
        OptionError: the key is not where it should be.
    """
    if options.token is None:
        return None
    assert options.username is not None  # the options saw to it
    audience = f"sb://{options.parsed.host}/{options.address or ''}"
    return audience, amqp.SasTokens(options.username, options.password() or "")


def _mechanism(options: PeerOptions) -> Any:
    name = options.sasl_mechanism
    if name is None:
        return None if options.token is None else amqp.sasl.Anonymous()
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
        f"option 'sasl.mechanism' is {name!r}: NONE, ANONYMOUS, EXTERNAL, PLAIN or one of SCRAM-... is possible"
    )


async def dialling(
    options: PeerOptions,
    use: Callable[[amqp.Connection, Callable[[], None]], Awaitable[T]],
    connect: Callable[[PeerOptions], AbstractAsyncContextManager[amqp.Connection]] = dial,
) -> T:
    """Call ``use`` with a connection, and with a new one whenever that is lost; its result, once it returns.

    Args:
        options: say where to, and in ``reconnect_timeout`` for how many seconds it may be in vain.
        use: also gets a function to call when it got somewhere, so that the time begins anew.
        connect: where connections come from.

    Raises:
        GaveUpError: it was in vain for too long, or the peer said what another attempt cannot change.
        AmqpError, OSError: as ``use`` raises them, where it is not a loss.

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
            if not _is_loss(loss, came_through):
                raise
            if trio.current_time() + pause > deadline:
                raise GaveUpError(
                    f"{options.where}: no success for {options.reconnect_timeout:g} s (reconnect.timeout): {loss}"
                ) from loss
            _log.warning("%s: %s; trying again in %.1f s", options.where, loss, pause)
        await trio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _is_loss(failure: BaseException, came_through: bool) -> bool:
    """Whether another attempt may be luckier."""
    of_091 = is_091_loss(failure, came_through)
    if of_091 is not None:
        return of_091
    condition = getattr(getattr(failure, "error", None), "condition", None)
    if condition in _FINAL or (condition == _NOT_FOUND and not came_through):
        return False
    gone = (amqp.ConnectionClosedError, amqp.SessionEndedError, amqp.LinkDetachedError)
    return isinstance(failure, gone) or (
        isinstance(failure, OSError) and not isinstance(failure, amqp.AmqpError)
    )


async def in_one(*jobs: Callable[[], Awaitable[object]]) -> None:
    """Run jobs side by side until all have returned; the first that fails ends the others, and its exception is raised alone.

    Cancelled: all of them are.
    """
    failure: Exception | None = None

    async def run(job: Callable[[], Awaitable[object]]) -> None:
        nonlocal failure
        try:
            await job()
        except Exception as its_own:  # or it would come out as a group of one
            if failure is None:
                failure = its_own
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(run, job)
    if failure is not None:
        raise failure
