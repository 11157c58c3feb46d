"""Namespace: a container with keys, whose addresses ignore case.

Knows tokens, and what connection strings look like; knows no entities.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.container import Container
from trio_amqp10.container.rights.claims import Claim, SasKeys, TokenOffer
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.tokens import path_of

from .constants import MANAGEMENT
from .null_padding import MARGIN, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.protocols.amqp10.connection import Amqp10Connection
    from trio_amqp10.container.rights.access import Access
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.spec.transport import Error

__all__ = ["KEY", "KEY_NAME", "Namespace", "NamespaceContainer", "may_ask"]

KEY_NAME: Final = "RootManageSharedAccessKey"
KEY: Final = "SAS_KEY_VALUE"
"""What connection strings of the development emulators have."""

_ROOT: Final = {KEY_NAME: (KEY, "send receive create transact")}


class NamespaceContainer(Container):
    """The container.

    Args:
        name: the container id that peers see.
        wall_clock: seconds since 1970.
        converse: makes what admits the links of a connection.
    """

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

    def spell(self, address: str) -> str:
        """However this address is written, it means this one, or the one that was first; returns which."""
        return self._spellings.setdefault(address.casefold(), address)

    def add_node(self, node: Node) -> None:
        written = self.spell(node.address)
        if written != node.address:
            raise LocalProtocolError(f"{self.nodes[written]!r} has that address already, in another case")
        super().add_node(node)

    def resolve(self, address: str) -> str:
        path = path_of(address) if "://" in address else address
        return self._spellings.get(path.casefold(), path or address)

    def vet(self, connection: Connection) -> Error | None:
        write_buffer = connection.engine.write_buffer  # all that we write goes through here
        write_buffer.finish = fill
        write_buffer.frame_size -= MARGIN
        return super().vet(connection)


class Namespace:
    """What clients connect to, with a token that one of its keys has signed.

    Args:
        container: what serves it; takes tokens from now on.
        keys: by name, each a key and its rights; the emulator's one key if None.

    Attributes:
        container: as given.
    """

    def __init__(self, container: Container, keys: Mapping[str, tuple[str, str]] | None) -> None:
        self.container = container
        self._keys = dict(_ROOT if keys is None else keys)
        self._verify_sas = SasKeys(self._keys)
        container.add_cbs(self._verify, azure=True)

    def connection_string(self, port: int, key_name: str = KEY_NAME) -> str:
        """What clients of Microsoft's are given to connect to it, served at this port of this machine.

        Args:
            port: where it is served, without TLS.
            key_name: which of the keys to use.

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
    """Whether somebody with these claims may ask something about an entity: who may do anything there."""
    return any(claim.permits(action, address) for claim in claims for action in ("send", "receive"))


def _permit(access: Access) -> bool:
    """What claims permit; and requests: to one entity's node, or to that of all, where each is judged when it comes."""
    if access.action == "open" or access.claimed:
        return True
    address = access.address
    if address is None or not f"/{address}".endswith(MANAGEMENT):
        return False
    return bool(access.claims) if address == MANAGEMENT[1:] else may_ask(access.claims, address)
