"""Errors of a peer: a resource ended, was refused, or a message was not accepted.

``ConnectionClosedError``, ``SessionEndedError`` and ``LinkDetachedError`` are also
``trio.BrokenResourceError``, so that code for any trio resource catches them. A use after your own close
always raises ``trio.ClosedResourceError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import AmqpError, Condition, LocalProtocolError, SecurityError
from trio_amqp10.net.errors import ConnectionClosedError, GoneError

from .sole_connection_request import is_superseded

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.messaging import Modified, Rejected, Released
    from trio_amqp10.amqp10.spec.transport import Error

__all__ = [
    "ConnectionClosedError",
    "ConnectionRedirectError",
    "DeliveryAbortedError",
    "DeliveryError",
    "DeliveryInDoubtError",
    "DeliveryModifiedError",
    "DeliveryRejectedError",
    "DeliveryReleasedError",
    "FilterNotSupportedError",
    "GuaranteeNotSupportedError",
    "LinkDetachedError",
    "LinkRedirectError",
    "LinkRefusedError",
    "LinkStolenError",
    "SessionEndedError",
    "TransactionError",
    "TransactionInDoubtError",
    "TransactionRolledBackError",
    "connection_error",
    "describe",
    "is_final",
    "is_final_loss",
    "link_error",
    "link_title",
    "lost_with",
]

_FINAL: Final = frozenset(
    str(condition.value)
    for condition in (
        Condition.STOLEN,
        Condition.UNAUTHORIZED_ACCESS,
        Condition.NOT_ALLOWED,
        Condition.NOT_IMPLEMENTED,
        Condition.INVALID_FIELD,
        Condition.CONNECTION_REDIRECT,
        Condition.LINK_REDIRECT,
        Condition.MESSAGE_SIZE_EXCEEDED,
        Condition.PRECONDITION_FAILED,
        Condition.RESOURCE_DELETED,
    )
)


def describe(error: Error | None) -> str:
    """Return a condition and its description as text.

    The peer chose both, so the text is cut after 1,024 characters, and control characters are replaced.
    """
    if error is None:
        return "without an error"
    text = str(error.condition)
    if error.description:
        text += f": {error.description}"
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:1024])


class _RedirectError(GoneError):
    """The place that an error redirects to; a missing or wrongly typed field is None."""

    def _field(self, key: str, kind: type[Any]) -> Any:
        info = None if self.error is None else self.error.info
        value = None if info is None else info.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            return None
        return kind(value)  # sockets take no subclasses of int

    @property
    def hostname(self) -> str | None:
        """The host to name in ``open``, SASL and TLS."""
        return self._field("hostname", str) or None

    @property
    def network_host(self) -> str | None:
        """The name or address of the machine; None if it is ``hostname``."""
        return self._field("network-host", str) or None

    @property
    def port(self) -> int | None:
        """The port to dial; None for the port of the last connection."""
        port = self._field("port", int)
        return port if port is not None and 0 < port < 65536 else None


class ConnectionRedirectError(ConnectionClosedError, _RedirectError):
    """The peer redirects the connection to another place (2.8.16).

    ``open_connection(follow_redirects=True)`` follows redirects.

    Attributes:
        hostname: the host to name in ``open``, SASL and TLS, or None.
        network_host: the name or address of the machine; None if it is ``hostname``.
        port: the port to dial; None for the port of the last connection.
    """


class SessionEndedError(GoneError):
    """The peer ended the session of this link."""


class LinkDetachedError(GoneError):
    """The peer detached the link.

    Attributes:
        closed: whether the peer closed it for good; a link that was only detached may be resumed (2.6.4).
    """

    def __init__(self, message: str, error: Error | None = None, *, closed: bool = True) -> None:
        super().__init__(message, error)
        self.closed = closed


class LinkRefusedError(LinkDetachedError):
    """The peer refused the link: no such node, not allowed, or a limit (2.6.3)."""


class LinkStolenError(LinkDetachedError):
    """Another link of the same name replaced this one (2.6.1)."""


class LinkRedirectError(LinkDetachedError, _RedirectError):
    """The node is at another place (2.8.18); ``conn.open_redirected(error)`` dials it.

    Attributes:
        hostname, network_host, port: as of ``ConnectionRedirectError``.
    """

    @property
    def address(self) -> str | None:
        """The address of the node there; None if it is the same as here."""
        address: str | None = self._field("address", str)
        return address


class FilterNotSupportedError(AmqpError):
    """The peer does not apply a filter that the receiver asked for (3.5.3, filter).

    Its attach does not confirm the filter.
    """


class GuaranteeNotSupportedError(AmqpError):
    """The peer cannot give a guarantee that was asked for.

    Its settle modes are weaker than those of the guarantee (2.7.3), or it lacks a capability that an option
    needs.
    """


class TransactionError(AmqpError):
    """The coordinator did not declare or discharge a transaction (4.2, 4.3).

    Attributes:
        error: the coordinator's error, or None.
        condition: the condition of that error, or None.
    """

    def __init__(self, message: str, error: Error | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.condition: str | None = None if error is None else str(error.condition)


class TransactionRolledBackError(TransactionError):
    """The commit failed, and the transaction was rolled back (4.3).

    None of its work has taken effect.
    """


class TransactionInDoubtError(TransactionError):
    """The answer to a commit was lost.

    All of the transaction has taken effect, or nothing of it.
    """


class DeliveryAbortedError(AmqpError):
    """The sender aborted a message while it was being read (2.7.5).

    Drop the part that was read.
    """


class DeliveryError(AmqpError):
    """The receiver did not accept the message.

    Attributes:
        outcome: the outcome that it gave instead.
        delivery: the delivery that was sent.
    """

    def __init__(self, message: str, outcome: Any, delivery: Any) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.delivery = delivery


class DeliveryInDoubtError(AmqpError):
    """The link was resumed, and the peer had forgotten the delivery.

    It will not be known whether the message arrived.

    Attributes:
        delivery: the delivery, with its tag.
        message: the message; send it again if a duplicate does no harm.
    """

    def __init__(self, delivery: Any, message: Any) -> None:
        super().__init__(
            f"delivery {delivery.tag!r} is in doubt: the peer kept no state of its link, and sending it again might repeat it"
        )
        self.delivery = delivery
        self.message = message


class DeliveryRejectedError(DeliveryError):
    """The receiver rejected the message as invalid (3.4.3).

    Sending it again does not help.
    """

    outcome: Rejected

    def __init__(self, outcome: Rejected, delivery: Any) -> None:
        super().__init__(f"rejected, {describe(outcome.error)}", outcome, delivery)
        self.condition: str | None = None if outcome.error is None else str(outcome.error.condition)


class DeliveryReleasedError(DeliveryError):
    """The message was not and will not be acted upon; it may be sent again (3.4.4)."""

    outcome: Released

    def __init__(self, outcome: Released, delivery: Any) -> None:
        owner = getattr(getattr(delivery, "link", None), "owner", None)
        address = getattr(owner, "node", None)  # None if each message names its own
        to = "" if address is None else f" for {address!r}"
        super().__init__(
            f"released: it was not processed, and may be sent again; a broker releases a message{to} that no queue takes",
            outcome,
            delivery,
        )


class DeliveryModifiedError(DeliveryError):
    """The message was not processed, and the receiver gave it back modified (3.4.5)."""

    outcome: Modified

    def __init__(self, outcome: Modified, delivery: Any) -> None:
        super().__init__(f"not processed: {outcome!r}", outcome, delivery)


_KINDS: dict[str, type[LinkDetachedError]] = {
    Condition.STOLEN.value: LinkStolenError,
    Condition.LINK_REDIRECT.value: LinkRedirectError,
}


def connection_error(error: Error) -> ConnectionClosedError:
    """Return the exception for a connection that the peer closed with ``error``."""
    redirects = str(error.condition) == Condition.CONNECTION_REDIRECT.value
    kind = ConnectionRedirectError if redirects else ConnectionClosedError
    return kind(f"the peer closed the connection, {describe(error)}", error)


def link_title(name: str, address: str | None) -> str:
    """Return the words for a link after "the link": its address and its name."""
    return repr(name) if address is None else f"to {address!r} ({name})"


def link_error(
    name: str,
    error: Error | None,
    closed: bool,
    default: type[LinkDetachedError] = LinkDetachedError,
    address: str | None = None,
) -> LinkDetachedError:
    """Return the exception for a link that the peer detached with ``error``."""
    kind = default if error is None else _KINDS.get(str(error.condition), default)
    verb = "refused" if kind is LinkRefusedError else "detached"
    return kind(f"the link {link_title(name, address)} was {verb}, {describe(error)}", error, closed=closed)


def is_final(error: Error | None) -> bool:
    """Whether another attempt would only result in the same error."""
    return error is not None and (str(error.condition) in _FINAL or is_superseded(error))


def is_final_loss(failure: Exception) -> bool:
    """Whether dialling again would only result in the same failure."""
    if isinstance(failure, SecurityError | LocalProtocolError):
        return True
    return isinstance(failure, ConnectionClosedError) and is_final(failure.error)


def lost_with(loss: Exception | None, what: str) -> ConnectionClosedError:
    """Return the exception for a link or delivery that a loss of the connection ended.

    The connection itself may have been restored.
    """
    error = getattr(loss, "error", None)
    why = describe(error) if error is not None else str(loss or "the connection was lost")
    gone = ConnectionClosedError(f"{what}: {why}", error)
    gone.__cause__ = loss
    return gone
