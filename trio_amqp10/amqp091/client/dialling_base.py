"""Open connections for the 0-9-1 and 10.3 clients: transport, TLS, SASL, login.

Each ``dial`` module adds the parts of its version.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import trio

from trio_amqp10.amqp091.wire.fields import write_short_string
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.dialling_base import DiallingBase
from trio_amqp10.sasl import ClientContext, ClientMechanism, check_allowed

from .connection_base import ConnectionBase
from .errors import connection_lost
from .login import Login, mechanisms_for
from .recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.amqp091.engine.limits import Limits
    from trio_amqp10.net.recovery_base import RecoveryBase
    from trio_amqp10.net.transport_layers import Transport

    from .connection_base import ClientEngine
    from .dial_options import DialOptions
    from .urls import Place

C = TypeVar("C", bound=ConnectionBase[Any])


def _check_virtual_host(name: str) -> None:
    try:
        write_short_string(bytearray(), name)
    except LocalProtocolError as fault:
        raise LocalProtocolError(f"vhost {name!r} is not a valid virtual host: {fault}") from None


class SharedDialling(DiallingBase[C, "Place | None"]):
    """A connection that is not opened yet: enter it with ``async with``.

    Args:
        options: the arguments of ``open_connection``.
    """

    recovery_class: ClassVar[type[RecoveryBase[Any]]] = Recovery

    def __init__(self, options: DialOptions) -> None:
        places, stream = options.places(), options.stream
        super().__init__(places or (() if stream is None else (None,)), stream, options.backoff)
        self.options = options
        self._properties: Final = options.properties()
        for place in self._places:  # report options that are not valid before anything is dialled
            options.limits_at(place)
            options.tls_at(place).layers_for(None if place is None else place.url)
            _check_virtual_host(options.virtual_host_at(place))

    @abstractmethod
    def make_connection(self, close_timeout: float) -> C:
        """Return a connection that has no transport yet."""

    @abstractmethod
    def make_engine(self, now: float, limits: Limits, virtual_host: str) -> ClientEngine:
        """Return the engine of one transport."""

    # -- one transport ----------------------------------------------------------------------

    async def _reach(self, place: Place | None, limits: Limits) -> tuple[Transport, bool]:
        url = None if place is None else place.url
        seconds = limits.handshake_timeout
        try:
            return await self._transport_to(url, self.options.tls_at(place), seconds)
        except trio.TooSlowError:
            raise connection_lost(f"no answer within {seconds:g} s") from None

    def _mechanisms(self, place: Place | None, private: bool) -> Sequence[ClientMechanism]:
        options = self.options
        secure = private or options.allow_plaintext_password
        chosen = options.sasl
        if isinstance(chosen, ClientMechanism):
            found: Sequence[ClientMechanism] = (chosen,)
        elif chosen is not None:
            found = tuple(chosen)
        else:
            user, password = options.login or (
                (None, None) if place is None else (place.url.username, place.url.password)
            )
            certificate = options.tls_at(place).certfile is not None
            found = mechanisms_for(user, password, secure=secure, has_certificate=certificate)
            if place is not None and place.mechanisms:
                usable = [each.name for each in found]
                found = [each for each in found if each.name in place.mechanisms]
                if not found:
                    raise LocalProtocolError(
                        f"auth_mechanism={', '.join(place.mechanisms)} in the URL: none of these can be used here; "
                        f"usable with this login and transport are {', '.join(usable)}"
                    )
        return check_allowed(found, secure=secure)

    async def _dial(self) -> str:
        place = self._next_place()
        options = self.options
        limits = options.limits_at(place)
        transport, private = await self._reach(place, limits)
        try:
            mechanisms = self._mechanisms(place, private)
        except BaseException:
            await trio.aclose_forcefully(transport.stream)
            raise
        engine = self.make_engine(trio.current_time(), limits, options.virtual_host_at(place))
        context = ClientContext(
            hostname=None if place is None else place.url.host or None,
            channel_bindings=transport.channel_bindings,
        )
        connection = self._connection or self.make_connection(options.close_timeout)
        connection.begin(engine, transport.stream, self._nursery)
        connection.wake_writer()
        try:
            await Login(connection, mechanisms, context, self._properties).run()
        except BaseException:
            await connection.hang_up()
            raise
        self._connection = connection
        return "a stream" if place is None else str(place)
