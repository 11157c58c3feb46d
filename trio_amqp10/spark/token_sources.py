"""Tokens for a peer: of a key, of a command, or of Microsoft Entra.

A token exists in memory alone: options, and so plans and checkpoints, have only the way to get one. Each process
that connects gets its own token, uses it again while it is fresh, and renews it (``keep_token``).

Knows options and tokens; neither connections nor messages.
"""

from __future__ import annotations

import os
import shlex
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.tokens import SAS, SasToken, Token

from .options import OptionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .options import PeerOptions

    TokenSource = Callable[[str], Awaitable[Token]]

_PATIENCE: Final = 60.0
"""Seconds after which a command is killed."""
_FRESH: Final = 0.8
"""The fraction of its lifetime for which a token is used again.

A connection asks for the next one after nine tenths.
"""
_AUDIENCE: Final = "AMQP10_AUDIENCE"
"""The environment variable in which a command finds the audience."""
_SERVICE_BUS: Final = "https://servicebus.azure.net/.default"
_EVENT_HUBS: Final = "https://eventhubs.azure.net/.default"
_BEARER: Final = "SharedAccessSignature "


def token_source(options: PeerOptions) -> tuple[str, TokenSource] | None:
    """Return the audience and the source of tokens; None without such options.

    Raises:
        OptionError: the key cannot be read, or azure-identity is not installed.
    """
    audience = f"sb://{options.parsed.host}/{options.address or ''}"
    if options.token == "sas":
        assert options.username is not None  # PeerOptions._check requires it
        return audience, amqp.SasTokens(options.username, options.password() or "")
    if options.token_command is not None:
        return audience, _of_command(options.token_command)
    if options.token == "entra":
        hubs = getattr(options, "dialect", None) == "event-hubs"
        return audience, _of_entra(options.token_scope or (_EVENT_HUBS if hubs else _SERVICE_BUS))
    return None


@lru_cache(16)
def _of_command(command: str) -> TokenSource:
    return FreshTokens(CommandTokens(command))


@lru_cache(16)
def _of_entra(scope: str) -> TokenSource:
    return FreshTokens(EntraTokens(scope))


class FreshTokens:
    """A source that gives a token of another source again while it is fresh.

    Args:
        source: an async function of an audience that returns a new token.
        wall_clock: returns the seconds since 1970.
    """

    def __init__(self, source: TokenSource, wall_clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._wall = wall_clock
        self._kept: dict[str, tuple[float, Token]] = {}

    async def __call__(self, audience: str) -> Token:
        """Return a token for an audience.

        Raises: the exception of the source.

        Cancelled: no token is kept.
        """
        now = self._wall()
        until, kept = self._kept.get(audience, (0.0, None))
        if kept is not None and now < until:
            return kept
        token = await self._source(audience)
        if token.expires is not None:
            self._kept[audience] = now + _FRESH * (token.expires - now), token
        return token


class CommandTokens:
    """A source of tokens that a command prints: a JSON Web Token or a SAS token.

    Args:
        command: the command with its arguments, as in a shell; no shell runs it. It finds the audience in the environment
            variable ``AMQP10_AUDIENCE``.
    """

    def __init__(self, command: str) -> None:
        self._arguments = shlex.split(command)

    def __repr__(self) -> str:
        return f"<CommandTokens {self._arguments[0]!r}>"  # arguments may be secrets

    async def __call__(self, audience: str) -> Token:
        """Run the command, and return its token.

        Raises:
            OptionError: the command cannot be started, or prints no token.
            OSError: the command failed, or took more than a minute.

        Cancelled: the command is ended.
        """
        with trio.move_on_after(_PATIENCE):
            try:
                done = await trio.run_process(
                    self._arguments,
                    capture_stdout=True,
                    check=False,
                    env=os.environ | {_AUDIENCE: audience},
                )
            except OSError as wrong:
                raise OptionError(
                    f"option 'tokenCommand': {self._arguments[0]!r} cannot be started: {wrong.strerror}; check its path on this machine"
                ) from None
            if done.returncode:
                raise OSError(
                    f"{self._arguments[0]!r} of option 'tokenCommand' ended with {done.returncode}; its errors are in the log of this process"
                )
            return self._read(done.stdout)
        raise TimeoutError(
            f"{self._arguments[0]!r} of option 'tokenCommand' printed no token within {_PATIENCE:g} s, and was ended; try it on this machine"
        )

    def _read(self, octets: bytes) -> Token:
        try:
            text = octets.decode("ascii").strip()
            if text.startswith(_BEARER):
                return Token(text, SAS, SasToken.parse(text).expires)
            return Token.jwt(text)
        except (ValueError, LocalProtocolError, RemoteProtocolError):
            raise OptionError(
                f"{self._arguments[0]!r} of option 'tokenCommand' printed no token: expected a JSON Web Token or a SAS token, and nothing else"
            ) from None


class EntraTokens:
    """A source of tokens that Microsoft Entra issues, by the package azure-identity.

    It takes the identity of the environment, as ``DefaultAzureCredential`` does: variables, a workload or managed identity, or that of ``az login``.

    Args:
        scope: of the tokens, e.g. ``https://eventhubs.azure.net/.default``.

    Raises:
        OptionError: azure-identity is not installed.
    """

    def __init__(self, scope: str) -> None:
        try:
            from azure.identity import DefaultAzureCredential
        except ModuleNotFoundError:
            raise OptionError(
                "option 'token' is 'entra', which needs azure-identity: install it with pip install 'trio-amqp10[entra]'"
            ) from None
        self._scope = scope
        self._credential = DefaultAzureCredential()

    async def __call__(self, audience: str) -> Token:  # noqa: ARG002 - the scope decides
        """Return a token.

        Raises:
            OSError: Entra gave no token.

        Cancelled: the request goes on in its thread, and its token is dropped.
        """
        try:
            found = await trio.to_thread.run_sync(
                self._credential.get_token, self._scope, abandon_on_cancel=True
            )
        except Exception as wrong:  # the package has many kinds, which have no common base with ours
            reason = str(wrong).partition("\n")[0]  # an attempt of each kind follows, line by line
            raise OSError(
                f"no token for {self._scope} came from Microsoft Entra: {reason}; check the identity of this process"
            ) from wrong
        return Token(found.token, "jwt", float(found.expires_on))
