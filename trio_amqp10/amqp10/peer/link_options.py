"""The options of a link and its attach, checked before any use (2.7.3, 3.5).

Knows no connection and no link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from trio_amqp10.amqp10.engine.open_options import symbols
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, Target, TerminusDurability
from trio_amqp10.amqp10.spec.transactions import Coordinator
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode, SenderSettleMode
from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.core.arguments import check_type, shown
from trio_amqp10.core.errors import LocalProtocolError

from .terminus_store import NOTHING_KEPT, Retention, TerminusStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio_amqp10.amqp10.engine.link import Link as EngineLink

    from .link_carriers import LinkSession

ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
"""The capability for senders without an address (Anonymous Terminus 1.0, 2.2.1)."""

_SELECTOR: Final = "apache.org:selector-filter:string"

_PLAIN_FILTERS: Final = "com.microsoft:"
"""The beginning of the names of Azure's filters, which have no descriptor."""

_KEPT = 300
"""Seconds that a peer should keep a link whose program may attach it again."""

E = TypeVar("E", bound=IntEnum)

FilterNeed = Literal["required", "optional"]
"""Whether a link must have each filter of its source, or can do without."""

_KEEPING: Final = {"durable": "durable", "expiry_policy": "expiry_policy", "expiry_timeout": "timeout"}
"""Options for what the peer keeps, and the fields of a terminus (3.5.3) for them."""

Guarantee = Literal["at-most-once", "at-least-once", "exactly-once"]

_MODES: dict[str, tuple[SenderSettleMode, ReceiverSettleMode]] = {
    "at-most-once": (SenderSettleMode.SETTLED, ReceiverSettleMode.FIRST),
    "at-least-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.FIRST),
    "exactly-once": (SenderSettleMode.UNSETTLED, ReceiverSettleMode.SECOND),
}


def settle_modes(guarantee: str) -> tuple[SenderSettleMode, ReceiverSettleMode]:
    """Return the settle modes that give a guarantee (2.8.2, 2.8.3)."""
    try:
        return _MODES[guarantee]
    except (KeyError, TypeError):
        raise LocalProtocolError(f"guarantee {guarantee!r}: expected one of {', '.join(_MODES)}") from None


def _member(name: str, kind: type[E], value: Any) -> E:
    """Return the member of an enumeration with a value."""
    try:
        return kind(value)
    except ValueError:
        expected = ", ".join(f"{kind.__name__}.{each.name}" for each in kind)
        raise LocalProtocolError(f"{name}={shown(value)}: expected one of {expected}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """The options of a user that ``LinkOptions`` has unchanged."""

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
    """The fields of an attach, and how to resume the link (2.7.3)."""

    own_session: bool | None = None
    desired_capabilities: tuple[str, ...] = ()
    offered_capabilities: tuple[str, ...] = ()
    max_message_size: int | None = None
    retention: Retention = NOTHING_KEPT
    filters: FilterNeed = "required"
    anonymous: bool = False

    @property
    def restorable(self) -> bool:
        """Whether a connection with ``reconnect`` attaches the link again.

        Not the control link of a transaction, because a transaction is never tried again (4.1).
        """
        return not isinstance(self.target, Coordinator)

    @property
    def is_paired(self) -> bool:
        """Whether it is one of a pair of links (Link Pairing 1.0)."""
        return any(str(key) == "paired" and value is True for key, value in (self.properties or {}).items())

    def __post_init__(self) -> None:
        snd, rcv = self.modes()  # raises if the guarantee is unknown, before anything is sent
        _member("snd_settle_mode", SenderSettleMode, snd)
        _member("rcv_settle_mode", ReceiverSettleMode, rcv)
        check_type("name", self.name, (str, type(None)), "a str, or None for a new one")
        if self.store is not None and self.name is None:
            raise LocalProtocolError(
                "a link with a store needs a name, by which the store finds it: give name="
            )
        if self.store is not None and not hasattr(self.store, "open"):  # a path, for instance
            raise LocalProtocolError(
                f"store={self.store!r}: expected a store, such as SqliteTerminusStore(path), or None"
            )

    @property
    def remembers(self) -> bool:
        """Whether the link can be resumed after a detach (2.6.5)."""
        return self.guarantee != "at-most-once" and (self.store is not None or self.retention.survives)

    def attach_to(self, link: EngineLink) -> None:
        """Write the attach of ``link``.

        Raises:
            LocalProtocolError: the link is attached already, the attach fits no frame, or the session is
                over.
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
        """Return the settle modes to ask for."""
        sender, receiver = settle_modes(self.guarantee)
        return (
            sender if self.snd_settle_mode is None else self.snd_settle_mode,
            receiver if self.rcv_settle_mode is None else self.rcv_settle_mode,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningOptions(_Shared):
    """The options that ``open_sender`` and ``open_receiver`` share, on a session.

    ``Connection.open_sender`` describes them.
    """

    address: str | None = field(kw_only=False)
    capabilities: str | Iterable[str] = ()
    durable: bool | TerminusDurability | None = None
    expiry_policy: str | None = None
    expiry_timeout: float = 0

    def for_link(
        self, recovering: bool, source_address: str | None, target_address: str | None, **more: Any
    ) -> LinkOptions:
        """Return the options of the attach, with ``more`` of them.

        ``recovering``: whether the connection has ``reconnect``.

        Raises:
            LocalProtocolError: options that no attach can carry.
        """
        kept = self._retention(self.store is not None or (recovering and self.guarantee == "exactly-once"))
        shared: dict[str, Any] = {name: getattr(self, name) for name in _Shared.__slots__}
        shared["source"] = self._completed("source", kept.source(source_address))
        shared["target"] = self._completed("target", kept.target(target_address))
        return LinkOptions(**shared, **more, desired_capabilities=symbols(self.capabilities), retention=kept)

    def _completed(self, name: str, made: Source | Target) -> Any:
        """Return the terminus that is given, completed from ``made``; or ``made``.

        Raises:
            LocalProtocolError: it has another value than the options.
        """
        given = getattr(self, name)
        if given is None:
            return made
        if not isinstance(given, Source | Target):  # that of a coordinator has none of the fields
            return given
        lacking: dict[str, Any] = {}
        if made.address is not None and given.address != made.address:
            if given.address is not None:
                raise LocalProtocolError(
                    f"address={made.address!r} and {name} with the address {given.address!r}: expected one of them"
                )
            lacking["address"] = made.address
        plain = type(given)()
        if all(getattr(given, field) == getattr(plain, field) for field in _KEEPING.values()):
            lacking |= {field: getattr(made, field) for field in _KEEPING.values()}
        else:
            for option, field in _KEEPING.items():
                asked, has = getattr(self, option), getattr(given, field)
                if not asked or has == getattr(made, field):
                    continue
                if has != getattr(plain, field):
                    raise LocalProtocolError(
                        f"{option}={asked!r} and {name} with {field}={has!s}: expected one of them, or both the same"
                    )
                lacking[field] = getattr(made, field)
        completed = replace(given, **lacking)
        check_dynamic(completed)
        return completed

    def _retention(self, comes_back: bool) -> Retention:
        """Return the state that both ends should keep of the link, and for how long.

        A link that will be attached again needs a peer that does not forget it at the detach, and not at a
        restart: so it asks for a durable terminus, unless ``durable`` is given.

        Raises:
            LocalProtocolError: ``expiry_timeout`` is negative.
        """
        if self.expiry_timeout < 0:
            raise LocalProtocolError(f"expiry_timeout={self.expiry_timeout}: expected seconds, 0 or more")
        durable = comes_back if self.durable is None else self.durable
        level = _member("durable", TerminusDurability, 2 if durable is True else durable)
        timeout = ceil(self.expiry_timeout)
        if comes_back and self.expiry_policy is None and not timeout:
            return Retention(level, ExpiryPolicy.CONNECTION_CLOSE, _KEPT)
        return Retention(level, self.expiry_policy or ExpiryPolicy.SESSION_END, timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderOptions(OpeningOptions):
    """The options of ``Session.open_sender``."""

    own_session: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions(OpeningOptions):
    """The options of ``Session.open_receiver``.

    ``Connection.open_receiver`` describes them.
    """

    own_session: bool | None = None
    streaming: bool = False
    credit: int | None = None
    credit_octets: int | None = None
    prefetch: int | None = None
    filters: FilterNeed = "required"
    max_message_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSenderOptions(SenderOptions):
    """The options of ``Connection.open_sender``."""

    session: LinkSession | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReceiverOptions(ReceiverOptions):
    """The options of ``Connection.open_receiver``."""

    session: LinkSession | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequesterOptions(ConnectionSenderOptions):
    """The options of ``open_requester``.

    They are the options of the sender of requests, and how replies come.
    """

    reply_to: str | None = None
    direct: bool = False


def check_address(address: object) -> None:
    """Raise if ``address`` cannot be the address of a terminus."""
    if address is not None and not isinstance(address, str):
        raise LocalProtocolError(f"address={address!r}: expected a str or None")


def check_dynamic(terminus: object) -> None:
    """Raise if a dynamic terminus names its node, or a named one has node properties.

    Raises:
        LocalProtocolError: it has an address although it is dynamic, or ``dynamic_node_properties`` although
            it is not (3.5.3, 3.5.4).
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
    """Raise if it is no source, or an outcome or a filter of it is malformed.

    Raises:
        LocalProtocolError: it is of another type, an outcome is a symbol that no peer could know (3.5.3), or a filter is a
            plain value (3.5.8).
    """
    check_type("source", source, (Source, type(None)), "a Source, or None")
    if source is None:
        return
    for outcome in symbols(source.outcomes):
        if ":" not in outcome:
            raise LocalProtocolError(
                f"outcome {outcome!r}: expected the descriptor of an outcome, such as 'amqp:accepted:list' (3.5.3)"
            )
    for name, value in source.filter.items() if isinstance(source.filter, Mapping) else ():
        if not (value is None or isinstance(value, Described) or str(name).startswith(_PLAIN_FILTERS)):
            raise LocalProtocolError(
                f"filter {str(name)!r}: expected a Described, as in Described(Symbol({_SELECTOR!r}), \"colour = 'red'\"), "
                f"not {value!r} (3.5.8)"
            )


def check_made(terminus: object) -> None:
    """Raise if the answer to a dynamic terminus does not name a node (3.5.3, 3.5.4).

    Raises:
        LocalProtocolError: the terminus of the answer is dynamic and has no address.
    """
    if isinstance(terminus, (Source, Target)) and terminus.dynamic and terminus.address is None:
        raise LocalProtocolError("the peer asks for a dynamic node: create one, and accept with its address")
