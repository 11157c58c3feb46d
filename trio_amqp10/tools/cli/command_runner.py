"""Run one command, handle its interrupts and failures, and exit with its code.

Knows no command.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import signal
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import trio

from trio_amqp10.core.errors import AmqpError, SecurityError
from trio_amqp10.net.tasks_beside import tasks_beside
from trio_amqp10.sasl.errors import AuthenticationError, NoAcceptableMechanismError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Sequence

_CREDENTIALS = "log in: set AMQP10_USER and AMQP10_PASSWORD, or use a context"
_NO_LOGIN = "leave user and password out of the URL"
_SLOW = "took too long"
_UNAUTHORIZED = "amqp:unauthorized-access"
_HINTS = {
    "amqp:not-found": "the address is everything after the first / that follows the host",
    _UNAUTHORIZED: _CREDENTIALS,
    "amqp:not-allowed": "the address exists, but the peer does not permit this use of it",
}
_OF_RABBITMQ: Final = {
    """['"](queues|exchanges)/""": "an address of RabbitMQ begins with /: write two, as in amqp://HOST//queues/NAME",
    "Dynamic sources not supported": "RabbitMQ makes no queue for replies in AMQP 1.0: use an amqp091:// URL and the name of the queue",
}
"""Advice about errors of RabbitMQ, by a part of their text."""


class CommandError(Exception):
    """A failure of a command, reported to the user.

    Args:
        message: one line for the user: what is wrong, and what to do.
        code: the exit code.
    """

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class OutputClosedError(CommandError):
    """The reader of stdout has ended.

    The command ends without a message, as other programs in a pipe do.
    """

    def __init__(self) -> None:
        # Otherwise the interpreter would report the closed pipe again when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        super().__init__("")


class Interrupts:
    """The effect of SIGINT and SIGTERM on a command.

    The first signal cancels the innermost block of ``here()``, or the command if there is no block;
    the second signal cancels the command.
    """

    def __init__(self, everything: trio.CancelScope) -> None:
        self.seen: int = 0
        self._everything = everything
        self._scopes = [everything]

    @contextlib.contextmanager
    def here(self) -> Generator[trio.CancelScope, None, None]:
        """Let the first interrupt end only this block, and the command end in order."""
        with trio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                if self.seen:
                    scope.cancel()
                yield scope
            finally:
                self._scopes.remove(scope)

    def interrupt(self) -> None:
        """Cancel the innermost block or, the second time, the command."""
        self.seen += 1
        scope = self._scopes[-1] if self.seen == 1 else self._everything
        scope.cancel()


CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""The characters that change a terminal rather than being shown.

Control characters but tab and newline (ISO 6429), which move the cursor, rename the window or send input; separators of lines
and paragraphs; and format characters, which hide or reorder the characters next to them. The two joiners (U+200C, U+200D) are not
included, because some scripts cannot be read without them.
"""


def harmless(text: str) -> str:
    """Replace the control and format characters of a text by escapes, as ``\\x1b``.

    Text of a peer or a message must not change the user's terminal.
    """
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
    """Write a line to stderr, without control characters."""
    sys.stderr.write(f"{harmless(text)}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def log_to_stderr() -> Generator[None]:
    """Write the log of the library to stderr in the block, each line with its time."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger(__name__.partition(".")[0])  # that of the whole library
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)


async def write_out(octets: bytes) -> None:
    """Write results to stdout, in a thread, so that a slow reader blocks no task.

    A terminal gets no control characters (see ``harmless``); a file or a pipe gets the octets as they are.

    Raises:
        OutputClosedError: the reader of stdout has closed it.

    Cancelled: some of the octets may have been written.
    """
    sys.stdout.flush()
    if sys.stdout.isatty():
        octets = harmless(octets.decode(errors="backslashreplace")).encode()
    try:
        await trio.to_thread.run_sync(_write_all, sys.stdout.fileno(), octets, abandon_on_cancel=True)
    except BrokenPipeError:
        raise OutputClosedError from None


async def until_output_closed() -> None:
    """Wait until the program that reads stdout ends; for ever if stdout is no pipe.

    On Linux the end of the reader wakes who waits for input at the pipe (``POLLERR`` in poll(2)). On other systems this waits for
    ever: the next write fails.
    """
    output = sys.stdout.fileno()
    if sys.platform != "linux" or not stat.S_ISFIFO(os.fstat(output).st_mode):
        await trio.sleep_forever()
    await trio.lowlevel.wait_readable(output)


async def unhurried(function: Callable[[], Awaitable[None]], seconds: float = 0.5) -> None:
    """Run ``function`` to its end; if cancelled, give it so many seconds to finish."""
    async with tasks_beside() as nursery:
        with trio.CancelScope(shield=True) as patience:
            nursery.start_soon(_end_soon, patience, seconds)
            await function()


async def _end_soon(patience: trio.CancelScope, seconds: float) -> None:
    try:
        await trio.sleep_forever()
    finally:
        patience.deadline = trio.current_time() + seconds


def _write_all(fd: int, octets: bytes) -> None:
    view = memoryview(octets)
    while view:
        view = view[os.write(fd, view) :]


def run(command: Callable[[Interrupts], Awaitable[None]]) -> NoReturn:
    """Run ``command(interrupts)`` under trio, and exit with its code."""
    try:
        code = trio.run(_supervised, command)
    except KeyboardInterrupt:  # an interrupt before the signal receiver was installed
        code = 130
    sys.exit(code)


def run_plain(command: Callable[[], list[str]]) -> NoReturn:
    """Run a command without a connection, print the lines that it returns, and exit."""
    try:
        lines = command()
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(OutputClosedError().code)
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
                except OutputClosedError as failure:
                    code = failure.code
                except CommandError as failure:
                    say(f"amqp10: {failure}")
                    code = failure.code
                except Exception as failure:
                    text = explain(failure)
                    if text is None:
                        raise
                    if text:
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


@dataclass(frozen=True, kw_only=True)
class Dialled:
    """The server of a connection that could not be opened, or failed later.

    Attributes:
        authority: its host and port.
        user: the user of the login, or None.
        source: where user and password were given, if that is not the URL, or None.
        seconds: how long the attempt lasted.
        is_open: whether it was opened, and the failure came later.
    """

    authority: str
    user: str | None = None
    source: str | None = None
    seconds: float = 0.0
    is_open: bool = False


_DIALLED: Final = "dialled"


def note_dialled(failure: BaseException, dialled: Dialled) -> None:
    """Note at a failure which server was dialled, for ``explain``.

    The parts of a group get the note, and the first note stays.
    """
    if isinstance(failure, BaseExceptionGroup):
        for part in _parts(failure):
            note_dialled(part, dialled)
    elif not hasattr(failure, _DIALLED):
        setattr(failure, _DIALLED, dialled)


def was_dialled(failure: BaseException) -> bool:
    """Whether the failure is of a connection that could not be opened."""
    dialled: Dialled | None = getattr(failure, _DIALLED, None)
    return dialled is not None and not dialled.is_open


def explain(failure: BaseException) -> str | None:
    """Describe a failure in one line; None if it may be a fault of this program.

    The line is empty if there is nothing to report.
    """
    if isinstance(failure, BaseExceptionGroup):
        texts = {explain(one) for one in _parts(failure)}
        return None if None in texts else "; ".join(sorted(text for text in texts if text))
    if isinstance(failure, OutputClosedError):
        return ""
    dialled: Dialled | None = getattr(failure, _DIALLED, None)
    if isinstance(failure, SecurityError) or isinstance(failure.__cause__, SecurityError):
        why = failure if isinstance(failure, SecurityError) else failure.__cause__
        assert isinstance(why, SecurityError)
        return in_options(_one_line(_security(why, dialled)))
    if isinstance(failure, AmqpError):
        return in_options(_one_line(_amqp(failure, dialled)))
    if isinstance(failure, OSError):
        return in_options(_one_line(_os_error(failure)))
    return None


def _security(why: SecurityError, dialled: Dialled | None) -> str:
    """Describe why a login, or TLS, failed."""
    where = "" if dialled is None else f" at {dialled.authority}"
    source = None if dialled is None else dialled.source
    if isinstance(why, NoAcceptableMechanismError):  # the message of this error includes the advice
        text = str(why) if dialled is None else str(why).removeprefix(f"{dialled.authority}: ")
        if source is not None:
            text = text.replace(_NO_LOGIN, f"the user is from {source}: unset it for this server")
        return f"not authenticated{where}: {text}"
    if not isinstance(why, AuthenticationError):
        return _placed(str(why), dialled)
    user = None if dialled is None else dialled.user
    who = "" if user is None else f" as {user!r}"
    if why.temporary:
        hint = " (after too many failures a server refuses an address or a user for some time: wait, then try again)"
    elif user is None:
        hint = f" ({_CREDENTIALS})"
    else:
        hint = "" if source is None else f" (user and password are from {source})"
    text = str(why) if dialled is None else str(why).removeprefix(f"{dialled.authority}: ")
    text = text.replace(f"user {user!r}, ", "")
    return f"not authenticated{who}{where}: {text}{hint}"


def _amqp(failure: AmqpError, dialled: Dialled | None) -> str:
    """Describe an error of AMQP, with what to do if its condition is a frequent one."""
    condition = str(getattr(failure, "condition", None))
    hint: str | None
    if condition == _UNAUTHORIZED and dialled is not None and dialled.user is not None:
        hint = f"as user {dialled.user!r}" + (f", from {dialled.source}" if dialled.source else "")
    elif dialled is None or dialled.is_open:
        hint = next((hint for text, hint in _OF_RABBITMQ.items() if re.search(text, str(failure))), None)
        hint = hint or _HINTS.get(condition)
    else:
        hint = _CREDENTIALS if condition == _UNAUTHORIZED else None
        if _SLOW in str(failure):
            hint = f"{dialled.seconds:.0f} s"
    text = f"{failure} ({hint})" if hint else str(failure)
    return text if dialled is None or dialled.is_open else _placed(text, dialled)


def _placed(text: str, dialled: Dialled | None) -> str:
    """Return a text with the server that was dialled, if it does not name it."""
    return text if dialled is None or dialled.authority in text else f"{dialled.authority}: {text}"


_IN_OPTIONS: Final = {
    "ssl_context, cafile, certfile, server_hostname and insecure have": "the options of TLS have",
    ", or set layers, as in layers=['tls']": "",
    "serve(..., ssl_context=tls.server_context(certfile, keyfile))": "--tls-cert FILE",
    "tls.client_context(cafile=...)": "--tls-ca FILE",
    "after add_management(), or with": "with",
    "allow_plaintext_password=True": "--allow-plaintext-password",
    "insecure=True": "--insecure",
    "cafile=...": "--tls-ca FILE",
    "cafile": "--tls-ca",
    "certfile": "--tls-cert",
    "keyfile": "--tls-key",
}


@contextlib.contextmanager
def taken_port(option: str, http_option: str | None = None) -> Generator[None]:
    """Name the option that gives another place, if that of a listener is taken.

    Args:
        option: the option of the listeners.
        http_option: the option of those of HTTP, if there is one.

    Raises:
        CommandError: the port or the path is taken.
    """
    try:
        yield
    except Exception as failure:
        taken = _taken(failure)
        if taken is None:
            raise
        place = str(taken.filename or "the port")
        if "+unix://" in place:
            raise CommandError(
                f"{place} is in use by another program: choose another path with {option}"
            ) from None
        if http_option is not None and place.startswith("http"):
            option = http_option
        raise CommandError(
            f"{place} is in use by another program: choose another port with {option}; port 0 is a free one"
        ) from None


def _taken(failure: BaseException) -> OSError | None:
    if isinstance(failure, BaseExceptionGroup):
        return next(filter(None, map(_taken, _parts(failure))), None)
    return failure if isinstance(failure, OSError) and failure.errno == errno.EADDRINUSE else None


def in_options(text: str) -> str:
    """Replace the library's arguments in a message by the command's options."""
    for argument, option in _IN_OPTIONS.items():
        text = text.replace(argument, option)
    return text


def _os_error(failure: OSError) -> str:
    """Return the reason, after the name of the file if there is one."""
    where = f"{failure.filename}: " if failure.filename else ""
    return f"{where}{failure.strerror or failure}"


def _parts(failure: Any) -> Sequence[BaseException]:
    if isinstance(failure, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", failure).exceptions
    return (failure,)


def _one_line(text: str) -> str:
    return " ".join(text.split())
