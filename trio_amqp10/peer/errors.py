"""What only an adapter can raise: something is gone, refused, or was not accepted.

The three "gone" errors are also ``trio.BrokenResourceError``, so that code written for any trio
resource catches them. Use after your own close is ``trio.ClosedResourceError``, always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import AmqpError, Condition, LocalProtocolError, SecurityError
from trio_amqp10.net.errors import ConnectionClosedError, GoneError

from .sole_connection_request import is_superseded

if TYPE_CHECKING:
    from trio_amqp10.spec.messaging import Modified, Rejected, Released
    from trio_amqp10.spec.transport import Error

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
    "anew",
    "connection_error",
    "describe",
    "is_final",
    "is_final_loss",
    "link_error",
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
    """A condition and its description, bounded and without control characters: it is the peer's text."""
    if error is None:
        return "without an error"
    text = str(error.condition)
    if error.description:
        text += f": {error.description}"
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:1024])


class _RedirectError(GoneError):
    """What an error says of where to go; what is missing there, or of a wrong type, is None."""

    def _told(self, key: str, kind: type[Any]) -> Any:
        info = None if self.error is None else self.error.info
        value = None if info is None else info.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            return None
        return kind(value)  # sockets take no subclasses of int

    @property
    def hostname(self) -> str | None:
        """What to name in ``open``, SASL and TLS."""
        return self._told("hostname", str) or None

    @property
    def network_host(self) -> str | None:
        """The name or address of the machine; None if ``hostname`` is that too."""
        return self._told("network-host", str) or None

    @property
    def port(self) -> int | None:
        """Where it listens; None: where the last one did."""
        port = self._told("port", int)
        return port if port is not None and 0 < port < 65536 else None


class ConnectionRedirectError(ConnectionClosedError, _RedirectError):
    """The peer would have us go elsewhere (2.8.16): ``open_connection(follow_redirects=True)`` does.

    Attributes:
        hostname: what to name in ``open``, SASL and TLS, or None.
        network_host: the name or address of the machine; None if ``hostname`` is that too.
        port: where it listens; None: where the last one did.
    """


class SessionEndedError(GoneError):
    """The peer ended the session of this link."""


class LinkDetachedError(GoneError):
    """The peer detached the link.

    Attributes:
        closed: whether for good; a link that was only detached may be resumed (2.6.4).
    """

    def __init__(self, message: str, error: Error | None = None, *, closed: bool = True) -> None:
        super().__init__(message, error)
        self.closed = closed


class LinkRefusedError(LinkDetachedError):
    """The peer would not attach: no such node, not allowed, a limit (2.6.3)."""


class LinkStolenError(LinkDetachedError):
    """Another link of the same name took this one's place (2.6.1)."""


class LinkRedirectError(LinkDetachedError, _RedirectError):
    """The node is elsewhere (2.8.18): ``conn.open_redirected(error)`` goes there.

    Attributes:
        hostname, network_host, port: as of ``ConnectionRedirectError``.
    """

    @property
    def address(self) -> str | None:
        """The address of the node there; None: the same as here."""
        address: str | None = self._told("address", str)
        return address


class FilterNotSupportedError(AmqpError):
    """The peer does not apply a filter that a receiver asked for, or does not say that it does (3.5.3, filter)."""


class GuaranteeNotSupportedError(AmqpError):
    """The peer settles in a way that is weaker than the guarantee asked for (2.7.3), or does not do what was asked for."""


class TransactionError(AmqpError):
    """The coordinator would not do what was asked of it: declare a transaction, or discharge it (4.2, 4.3).

    Attributes:
        error: what the coordinator said of it, or None.
        condition: its condition, or None.
    """

    def __init__(self, message: str, error: Error | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.condition: str | None = None if error is None else str(error.condition)


class TransactionRolledBackError(TransactionError):
    """The transaction was to be committed, and was rolled back: nothing of it has happened (4.3)."""


class TransactionInDoubtError(TransactionError):
    """The commit was asked for, and the answer was lost: all of it has happened, or nothing."""


class DeliveryAbortedError(AmqpError):
    """The sender took a message back while it was read (2.7.5): drop what you have of it."""


class DeliveryError(AmqpError):
    """The receiver did not accept the message.

    Attributes:
        outcome: what it said instead.
        delivery: what was sent.
    """

    def __init__(self, message: str, outcome: Any, delivery: Any) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.delivery = delivery


class DeliveryInDoubtError(AmqpError):
    """The link was taken up again, and the peer had forgotten it: whether the message arrived will not be known.

    Attributes:
        delivery: what was sent, with its tag.
        message: the message, to be sent again by who can tell whether that does harm.
    """

    def __init__(self, delivery: Any, message: Any) -> None:
        super().__init__(
            f"delivery {delivery.tag!r} is in doubt: the peer kept no state of its link, and sending it again might repeat it"
        )
        self.delivery = delivery
        self.message = message


class DeliveryRejectedError(DeliveryError):
    """The message is invalid, says the receiver (3.4.3); sending it again is of no use."""

    outcome: Rejected

    def __init__(self, outcome: Rejected, delivery: Any) -> None:
        super().__init__(f"rejected, {describe(outcome.error)}", outcome, delivery)
        self.condition: str | None = None if outcome.error is None else str(outcome.error.condition)


class DeliveryReleasedError(DeliveryError):
    """The message was not and will not be acted upon (3.4.4); it may be sent again."""

    outcome: Released

    def __init__(self, outcome: Released, delivery: Any) -> None:
        super().__init__(
            "released: it was not processed, and may be sent again; RabbitMQ releases what it has no queue for",
            outcome,
            delivery,
        )


class DeliveryModifiedError(DeliveryError):
    """The message was not processed, and comes back changed (3.4.5)."""

    outcome: Modified

    def __init__(self, outcome: Modified, delivery: Any) -> None:
        super().__init__(f"not processed: {outcome!r}", outcome, delivery)


_KINDS: dict[str, type[LinkDetachedError]] = {
    Condition.STOLEN.value: LinkStolenError,
    Condition.LINK_REDIRECT.value: LinkRedirectError,
}


def connection_error(error: Error) -> ConnectionClosedError:
    """The exception for a connection that the peer closed with ``error``."""
    redirects = str(error.condition) == Condition.CONNECTION_REDIRECT.value
    kind = ConnectionRedirectError if redirects else ConnectionClosedError
    return kind(f"the peer closed the connection, {describe(error)}", error)


def link_error(
    name: str,
    error: Error | None,
    closed: bool,
    default: type[LinkDetachedError] = LinkDetachedError,
    address: str | None = None,
) -> LinkDetachedError:
    """The exception for a link that the peer detached with ``error``."""
    kind = default if error is None else _KINDS.get(str(error.condition), default)
    verb = "refused" if kind is LinkRefusedError else "detached"
    what = f"link {name!r}" if address is None else f"the link to {address!r} ({name})"
    return kind(f"{what} was {verb}, {describe(error)}", error, closed=closed)


def anew(failure: AmqpError) -> AmqpError:
    """The same exception anew: one object raised in several tasks would gather all their tracebacks."""
    kind = type(failure)
    again = kind.__new__(kind, *failure.args)
    again.__dict__.update(failure.__dict__)
    again.__cause__ = failure.__cause__
    return again.with_traceback(failure.__traceback__)


def is_final(error: Error | None) -> bool:
    """Whether trying again would only bring the same error again."""
    return error is not None and (str(error.condition) in _FINAL or is_superseded(error))


def is_final_loss(failure: Exception) -> bool:
    """Whether dialling again would only bring the same failure again."""
    if isinstance(failure, SecurityError | LocalProtocolError):
        return True
    return isinstance(failure, ConnectionClosedError) and is_final(failure.error)


def lost_with(loss: Exception | None, what: str) -> ConnectionClosedError:
    """The exception for something that the loss of a connection ended, though the connection came back."""
    error = getattr(loss, "error", None)
    why = describe(error) if error is not None else str(loss or "the connection was lost")
    gone = ConnectionClosedError(f"{what}: {why}", error)
    gone.__cause__ = loss
    return gone
