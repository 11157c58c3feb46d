"""Run one command to its exit code: interrupts, failures, messages.

Knows no command.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import trio

from trio_amqp10.errors import AmqpError, SecurityError
from trio_amqp10.sasl.errors import AuthenticationError, NoAcceptableMechanismError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Sequence

__all__ = [
    "CONTROLS",
    "CommandError",
    "Interrupts",
    "explain",
    "harmless",
    "run",
    "run_plain",
    "say",
    "unhurried",
    "write_out",
]

_CREDENTIALS = "user and password belong in the URL, as in amqp://user:password@host/address"
_HINTS = {
    "amqp:not-found": "the address is everything after the first / behind the host",
    "amqp:unauthorized-access": _CREDENTIALS,
    "amqp:not-allowed": "the peer knows the address, and does not permit this use of it",
}


class CommandError(Exception):
    """Something that was asked for did not happen.

    Args:
        message: one line for people: what was wrong, and what to do.
        code: the exit code.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Interrupts:
    """What SIGINT and SIGTERM do to a command.

    The first cancels the innermost block of ``here()``, or the command where there is none;
    the second cancels the command, wherever it is.
    """

    def __init__(self, everything: trio.CancelScope) -> None:
        self.seen: int = 0
        self._everything = everything
        self._scopes = [everything]

    @contextlib.contextmanager
    def here(self) -> Generator[trio.CancelScope, None, None]:
        """The part of a command that an interrupt ends, so that what is around it can end in order."""
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                if self.seen:
                    scope.cancel()
                yield scope
            finally:
                self._scopes.remove(scope)

    def interrupt(self) -> None:
        """A signal came."""
        self.seen += 1
        scope = self._scopes[-1] if self.seen == 1 else self._everything
        scope.cancel()


CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""What a terminal obeys rather than shows: control characters but for tab and newline (ISO 6429), which move the cursor, rename
the window or type for the user; separators of lines and paragraphs; and format characters, which reorder what stands beside them
or hide, but for the two joiners (U+200C, U+200D), without which some scripts cannot be read."""


def harmless(text: str) -> str:
    """What somebody else wrote, for a terminal: its control and format characters are shown, as ``\\x1b``, and not obeyed."""
    return CONTROLS.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    number = ord(found[0])
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )


def say(text: str) -> None:
    """A line for people, on stderr."""
    sys.stderr.write(f"{harmless(text)}\n")
    sys.stderr.flush()


async def write_out(octets: bytes) -> None:
    """Write results to stdout, however slowly they are read there, while the connection goes on.

    A terminal gets no control characters (see ``harmless``); a file or a pipe gets the octets as they are.

    Raises:
        CommandError: nobody reads any more.

    Cancelled: some of the octets may have been written.
    """
    sys.stdout.flush()
    if sys.stdout.isatty():
        octets = harmless(octets.decode(errors="backslashreplace")).encode()
    try:
        await trio.to_thread.run_sync(_write_all, sys.stdout.fileno(), octets, abandon_on_cancel=True)
    except BrokenPipeError:
        # Or the interpreter would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CommandError(
            "the output was closed; messages that were not written were not accepted"
        ) from None


async def unhurried(function: Callable[[], Awaitable[None]]) -> None:
    """Run what should not be torn in the middle; once cancelled, it has half a second to come to its end."""
    failure: CommandError | None = None
    async with trio.open_nursery() as nursery:
        with trio.CancelScope(shield=True) as patience:
            nursery.start_soon(_end_soon, patience)
            try:
                await function()
            except CommandError as its_own:  # or it would come out as a group of one
                failure = its_own
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _end_soon(patience: trio.CancelScope) -> None:
    try:
        await trio.sleep_forever()
    finally:
        patience.deadline = trio.current_time() + 0.5


def _write_all(fd: int, octets: bytes) -> None:
    view = memoryview(octets)
    while view:
        view = view[os.write(fd, view) :]


def run(command: Callable[[Interrupts], Awaitable[None]]) -> NoReturn:
    """Run ``command(interrupts)`` under trio and end the process with what came of it."""
    try:
        code = trio.run(_supervised, command)
    except KeyboardInterrupt:  # before the signals were ours
        code = 130
    sys.exit(code)


def run_plain(command: Callable[[], list[str]]) -> NoReturn:
    """Run a command that has no connection, print the lines that it returns, and end the process."""
    try:
        lines = command()
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except CommandError as failure:
        say(f"amqp10: {failure}")
        sys.exit(failure.code)
    except OSError as failure:
        say(f"amqp10: {_one_line(_os_error(failure))}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("amqp10: interrupted")
        sys.exit(130)
    sys.exit(0)


async def _supervised(command: Callable[[Interrupts], Awaitable[None]]) -> int:
    code = 0
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as everything:
                interrupts = Interrupts(everything)
                nursery.start_soon(_watch, signals, interrupts)
                try:
                    await command(interrupts)
                except CommandError as failure:
                    say(f"amqp10: {failure}")
                    code = failure.code
                except Exception as failure:
                    text = explain(failure)
                    if text is None:
                        raise
                    say(f"amqp10: {text}")
                    code = 1
            if everything.cancelled_caught:
                say("amqp10: interrupted")
                code = 130
            nursery.cancel_scope.cancel()
    return code


async def _watch(signals: AsyncIterable[int], interrupts: Interrupts) -> None:
    async for _ in signals:
        interrupts.interrupt()


def explain(failure: BaseException) -> str | None:
    """One line on a failure that is not this program's fault; None for one that may be."""
    if isinstance(failure, BaseExceptionGroup):
        texts = {explain(one) for one in _parts(failure)}
        return None if None in texts else "; ".join(sorted(text for text in texts if text))
    if isinstance(failure, SecurityError) or isinstance(failure.__cause__, SecurityError):
        why = failure if isinstance(failure, SecurityError) else failure.__cause__
        if isinstance(why, (AuthenticationError, NoAcceptableMechanismError)):
            return _one_line(f"not authenticated: {why} ({_CREDENTIALS})")
        return _one_line(str(why))
    if isinstance(failure, AmqpError):
        hint = _HINTS.get(str(getattr(failure, "condition", None)))
        return _one_line(f"{failure} ({hint})" if hint else str(failure))
    if isinstance(failure, OSError):
        return _one_line(_os_error(failure))
    return None


def _os_error(failure: OSError) -> str:
    """The reason, after the name of the file if there is one."""
    where = f"{failure.filename}: " if failure.filename else ""
    return f"{where}{failure.strerror or failure}"


def _parts(failure: Any) -> Sequence[BaseException]:
    if isinstance(failure, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", failure).exceptions
    return (failure,)


def _one_line(text: str) -> str:
    return " ".join(text.split())
