"""Namespace: a container with keys, whose addresses ignore case.

Knows tokens and connection strings; knows no entities.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp10.peer.listen import serve
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.rights.claims import Claim, SasKeys, TokenOffer
from trio_amqp10.container.container import Container
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.core.tokens import path_of
from trio_amqp10.net.option_signatures import takes_as
from trio_amqp10.sasl import Server
from trio_amqp10.sasl.anonymous import AnonymousServer

from .constants import CONSUMER_GROUPS, DEAD_LETTER_QUEUE, MANAGEMENT, SUBSCRIPTIONS
from .null_padding import MARGIN, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.server.connection import Amqp10Connection
    from trio_amqp10.amqp10.spec.transport import Error
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.rights.access import Access

KEY_NAME: Final = "RootManageSharedAccessKey"
KEY: Final = "SAS_KEY_VALUE"
"""The key in connection strings of the development emulators."""

_MAX_FRAME_SIZE: Final = 65_536
"""Octets of the largest frame; clients on ``uamqp`` refuse a larger limit."""

_ONLY_RECEIVED: Final = tuple(each.casefold() for each in (CONSUMER_GROUPS, DEAD_LETTER_QUEUE, SUBSCRIPTIONS))

_ROOT: Final = {KEY_NAME: (KEY, "send receive create transact")}


class _MssbCbs(AnonymousServer):
    """Microsoft's name for ANONYMOUS with a token at ``$cbs`` to follow.

    Clients on ``uamqp`` (azure-servicebus to 7.8, azure-eventhub to 5.10) log in by no other mechanism.
    """

    __slots__ = ()

    name = "MSSBCBS"


class _Login(Server):
    """Accepts every client: by either mechanism, or without a SASL layer."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(mechanisms=[_MssbCbs()], anonymous=True)

    @property
    def requires_sasl(self) -> bool:
        return False


class NamespaceContainer(Container):
    """The container of a namespace.

    Args:
        name: the container id.
        wall_clock: a clock that returns seconds since 1970.
        converse: makes the object that admits the links of a connection.
    """

    default_dialects: ClassVar[tuple[str, ...]] = ()  # The services speak AMQP 1.0 alone.

    def __init__(
        self,
        name: str | None,
        wall_clock: Callable[[], float],
        converse: Callable[[Any, Connection], Amqp10Connection],
    ) -> None:
        super().__init__(name, strict=True, wall_clock=wall_clock, authorise=_permit)
        self.post: Final = self._post
        self.call_at: Final = self._timers.call_at
        self.amqp10.converse = converse
        self._spellings: dict[str, str] = {}

    @takes_as(serve)
    async def serve(self, *urls: str, **options: Any) -> None:
        """Listen, and serve clients as the service does; see ``Container.serve``.

        By default clients log in by MSSBCBS or ANONYMOUS, and send frames of at most 65,536 octets, as to the service.

        Cancelled: as ``Container.serve``.
        """
        options.setdefault("sasl", _Login())
        options.setdefault("max_frame_size", _MAX_FRAME_SIZE)
        await super().serve(*urls, **options)

    def spell(self, address: str) -> str:
        """Register an address, and return its first spelling, which may differ in case."""
        return self._spellings.setdefault(address.casefold(), address)

    def add_node(self, node: Node) -> None:
        written = self.spell(node.address)
        if written != node.address:
            raise LocalProtocolError(
                f"{self.nodes[written]!r} has this address, in another case: choose another one"
            )
        super().add_node(node)

    def resolve(self, address: str) -> str:
        path = path_of(address) if "://" in address else address
        return self._spellings.get(path.casefold(), path or address)

    def vet(self, connection: Connection) -> Error | None:
        write_buffer = connection.engine.write_buffer  # all frames that we write pass through this buffer
        write_buffer.finish = fill
        write_buffer.frame_size -= MARGIN
        return super().vet(connection)


class Namespace:
    """A container whose clients put a token that is signed with one of its keys.

    Args:
        container: the container, which verifies tokens from now on.
        keys: by name, each a key and its rights; the emulator's one key if None.

    Attributes:
        container: as given.
    """

    def __init__(self, container: Container, keys: Mapping[str, tuple[str, str]] | None) -> None:
        self.container = container
        self._keys = dict(_ROOT if keys is None else keys)
        # Microsoft's clients for .NET write the resource in lower case.
        self._verify_sas = SasKeys(self._keys, ignore_case=True)
        container.add_cbs(self._verify, azure=True)

    def connection_string(self, port: int, key_name: str = KEY_NAME) -> str:
        """Return the connection string for Microsoft's clients.

        Args:
            port: the port of this machine at which the container is served, without TLS.
            key_name: the name of the key to use.

        Raises:
            LocalProtocolError: there is no such key.
        """
        if key_name not in self._keys:
            raise LocalProtocolError(f"no key {key_name!r}: expected one of {', '.join(self._keys)}")
        return (
            f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName={key_name};"
            f"SharedAccessKey={self._keys[key_name][0]};UseDevelopmentEmulator=true;"
        )

    def _verify(self, offer: TokenOffer) -> Claim:
        claim = self._verify_sas(offer)
        return replace(claim, audience=self.container.resolve(claim.audience))


def may_ask(claims: Iterable[Claim], address: str) -> bool:
    """Whether the claims permit requests to this ``$management`` of an entity."""
    return any(claim.permits(right, address) for claim in claims for right in _rights("receive", address))


def _rights(action: str, address: str | None) -> tuple[str, ...]:
    """Return the rights for an action: one of them is enough.

    To send to an entity is no right to know its subscriptions, consumer groups or dead letters: they take no messages.
    """
    lower = "" if address is None else address.casefold()
    if any(part in lower for part in _ONLY_RECEIVED):
        return ("receive",)
    return ("send", "receive") if lower.endswith(MANAGEMENT) else (action,)


def _permit(access: Access) -> bool:
    """Whether an access is permitted: by its claims, or because it is a request.

    Requests go to the ``$management`` node of an entity or of the namespace, which checks each request again.

    Raises:
        RefusedError: it is not. The address is shown in lower case, because its first spelling would reveal that it exists.
    """
    address = access.address
    if access.action == "open" or (address == MANAGEMENT[1:] and access.claims):
        return True
    if any(
        claim.permits(right, address) for claim in access.claims for right in _rights(access.action, address)
    ):
        return True
    shown = None if address is None else address.casefold()
    raise RefusedError(Condition.UNAUTHORIZED_ACCESS, replace(access, address=shown).refusal())
