"""What an attach asks for, checked before anything is done (2.7.3, 3.5).

Knows no connection and no link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.engine.open_options import symbols
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import ExpiryPolicy, Source, Target, TerminusDurability
from trio_amqp10.spec.transactions import Coordinator
from trio_amqp10.spec.transport import ReceiverSettleMode, SenderSettleMode

from .terminus_store import NOTHING_KEPT, Retention, TerminusStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio_amqp10.engine.link import Link as EngineLink

    from .link_carriers import LinkSession

__all__ = [
    "ANONYMOUS_RELAY",
    "ConnectionReceiverOptions",
    "ConnectionSenderOptions",
    "FilterNeed",
    "Guarantee",
    "LinkOptions",
    "ReceiverOptions",
    "RequesterOptions",
    "SenderOptions",
    "check_address",
    "check_dynamic",
    "check_made",
    "check_source",
    "settle_modes",
]

ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
"""The capability of a connection whose senders need name no address (Anonymous Terminus 1.0, 2.2.1)."""

_KEPT = 300
"""Seconds that a peer is asked to keep a link whose program may come back."""

FilterNeed = Literal["required", "optional"]
"""Whether a link can do without a filter that its source asks for."""

Guarantee = Literal["at-most-once", "at-least-once", "exactly-once"]

_MODES: dict[str, tuple[SenderSettleMode, ReceiverSettleMode]] = {
    "at-most-once": (SenderSettleMode.SETTLED, ReceiverSettleMode.FIRST),
    "at-least-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.FIRST),
    "exactly-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.SECOND),
}


def settle_modes(guarantee: str) -> tuple[SenderSettleMode, ReceiverSettleMode]:
    """The settle modes that give a guarantee (2.8.2, 2.8.3)."""
    try:
        return _MODES[guarantee]
    except KeyError:
        raise LocalProtocolError(f"guarantee {guarantee!r}: expected one of {', '.join(_MODES)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What users may say of a link and an attach carries as it is, or resuming the link needs."""

    name: str | None = None
    guarantee: Guarantee = "at-least-once"
    snd_settle_mode: SenderSettleMode | None = None
    rcv_settle_mode: ReceiverSettleMode | None = None
    source: Source | None = None
    target: Any = None
    properties: dict[Any, Any] | None = None
    store: TerminusStore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions(_Shared):
    """What an attach may say beyond address and guarantee (2.7.3)."""

    own_session: bool | None = None
    desired_capabilities: tuple[str, ...] = ()
    offered_capabilities: tuple[str, ...] = ()
    max_message_size: int | None = None
    retention: Retention = NOTHING_KEPT
    filters: FilterNeed = "required"
    anonymous: bool = False

    @property
    def restorable(self) -> bool:
        """Whether a connection that comes back attaches it again: a transaction is never tried again (4.1)."""
        return not isinstance(self.target, Coordinator)

    @property
    def is_paired(self) -> bool:
        """Whether it is one of a pair of links, in either direction (Link Pairing 1.0)."""
        return any(str(key) == "paired" and value is True for key, value in (self.properties or {}).items())

    def __post_init__(self) -> None:
        self.modes()  # a wrong guarantee is refused before anything is done
        if self.store is not None and self.name is None:
            raise LocalProtocolError("a link in a store needs a name to be found by: open it with name=")
        if self.store is not None and not hasattr(self.store, "open"):  # a path, for instance
            raise LocalProtocolError(
                f"store={self.store!r}: expected a store, such as SqliteTerminusStore(path), or None"
            )

    @property
    def remembers(self) -> bool:
        """Whether the link can be taken up again after a detach (2.6.5)."""
        return self.guarantee != "at-most-once" and (self.store is not None or self.retention.survives)

    def attach_to(self, link: EngineLink) -> None:
        """Write the attach of this link.

        Raises:
            LocalProtocolError: it is attached already, or fits no frame, or its session is over.
        """
        snd, rcv = self.modes()
        link.attach(
            source=self.source,
            target=self.target,
            snd_settle_mode=snd,
            rcv_settle_mode=rcv,
            max_message_size=self.max_message_size,
            properties=self.properties,
            offered_capabilities=self.offered_capabilities,
            desired_capabilities=self.desired_capabilities,
        )

    def modes(self) -> tuple[SenderSettleMode, ReceiverSettleMode]:
        """The settle modes to ask for."""
        sender, receiver = settle_modes(self.guarantee)
        return (
            sender if self.snd_settle_mode is None else self.snd_settle_mode,
            receiver if self.rcv_settle_mode is None else self.rcv_settle_mode,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningOptions(_Shared):
    """Options that ``open_sender`` and ``open_receiver`` share, on a session; ``Connection.open_sender`` describes them."""

    address: str | None = field(kw_only=False)
    capabilities: str | Iterable[str] = ()
    durable: bool | TerminusDurability | None = None
    expiry_policy: str | None = None
    expiry_timeout: float = 0

    def for_link(
        self, recovering: bool, source_address: str | None, target_address: str | None, **more: Any
    ) -> LinkOptions:
        """What the attach is to say, with ``more`` of it, on a connection that comes back or one that does not.

        Raises:
            LocalProtocolError: options that no attach can carry.
        """
        kept = self._retention(self.store is not None or (recovering and self.guarantee == "exactly-once"))
        said: dict[str, Any] = {name: getattr(self, name) for name in _Shared.__slots__}
        said["source"] = self.source or kept.source(source_address)
        said["target"] = kept.target(target_address) if self.target is None else self.target
        return LinkOptions(**said, **more, desired_capabilities=symbols(self.capabilities), retention=kept)

    def _retention(self, comes_back: bool) -> Retention:
        """What to ask both ends to keep; a link that comes back is of no use to a peer that forgets it at once.

        Nor to one that forgets it when it restarts, so it is asked to be durable, unless ``durable`` says otherwise.

        Raises:
            LocalProtocolError: a time-out that is none.
        """
        if self.expiry_timeout < 0:
            raise LocalProtocolError(f"expiry_timeout={self.expiry_timeout}: seconds, 0 or more")
        durable = comes_back if self.durable is None else self.durable
        level = TerminusDurability(2 if durable is True else int(durable))
        timeout = ceil(self.expiry_timeout)
        if comes_back and self.expiry_policy is None and not timeout:
            return Retention(level, ExpiryPolicy.CONNECTION_CLOSE, _KEPT)
        return Retention(level, self.expiry_policy or ExpiryPolicy.SESSION_END, timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderOptions(OpeningOptions):
    """Options of ``Session.open_sender``."""

    own_session: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions(OpeningOptions):
    """Options of ``Session.open_receiver``; ``Connection.open_receiver`` describes them."""

    own_session: bool | None = None
    streaming: bool = False
    credit: int | None = None
    credit_octets: int | None = None
    prefetch: int | None = None
    filters: FilterNeed = "required"
    max_message_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSenderOptions(SenderOptions):
    """Options of ``Connection.open_sender``."""

    session: LinkSession | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReceiverOptions(ReceiverOptions):
    """Options of ``Connection.open_receiver``."""

    session: LinkSession | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequesterOptions(ConnectionSenderOptions):
    """Options of ``open_requester``: those of the sender of requests, and how replies come."""

    reply_to: str | None = None
    direct: bool = False


def check_address(address: object) -> None:
    """Refuse an address that no terminus can have."""
    if address is not None and not isinstance(address, str):
        raise LocalProtocolError(f"an address is a str, not {address!r}")


def check_dynamic(terminus: object) -> None:
    """Refuse a terminus that asks the peer for a dynamic node and names it, or says of one what is about another (3.5.3, 3.5.4).

    Raises:
        LocalProtocolError: it has an address although it is dynamic, or properties although it is not.
    """
    if not isinstance(terminus, (Source, Target)):
        return
    if terminus.dynamic and terminus.address is not None:
        raise LocalProtocolError(
            f"a dynamic node with the address {terminus.address!r}: the peer chooses the address (3.5.3)"
        )
    if terminus.dynamic_node_properties and not terminus.dynamic:
        raise LocalProtocolError("dynamic_node_properties are for dynamic=True only (3.5.3)")


def check_source(source: Source | None) -> None:
    """Refuse outcomes that are no descriptors (3.5.3).

    Raises:
        LocalProtocolError: no peer could know such a symbol for an outcome.
    """
    for outcome in () if source is None else symbols(source.outcomes):
        if ":" not in outcome:
            raise LocalProtocolError(
                f"outcome {outcome!r}: the descriptor of an outcome, as 'amqp:accepted:list' (3.5.3)"
            )


def check_made(terminus: object) -> None:
    """Refuse to accept a link to a dynamic node without the address that the node was given (3.5.3, 3.5.4).

    Raises:
        LocalProtocolError: the terminus of the answer is dynamic and has no address.
    """
    if isinstance(terminus, (Source, Target)) and terminus.dynamic and terminus.address is None:
        raise LocalProtocolError(
            "the peer asks for a dynamic node: accept with the address of the node that was made"
        )
