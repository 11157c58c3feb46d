"""Handle an attach of the peer: new, an answer, or a stolen link (2.6.1, 2.6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Role
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import Described

from .error_encoding import error_of
from .states import LinkState
from .unsettled_map import has_tags

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Attach

    from .link import Link
    from .link_names import LinkNames
    from .session import Session

__all__ = ["on_attach"]


def on_attach(session: Session, attach: Attach) -> None:
    """The peer's attach, first or second.

    Raises:
        RemoteProtocolError: its handle is over what we take (2.7.2), or it has links resumed at too high a rate: either
            ends the connection.
        LocalProtocolError: the answer does not fit a frame of the peer's.
    """
    context, names = session.context, session.names
    context.charge_resumed()
    if attach.handle > context.limits.handle_max and context.strict.handle_max:
        raise rules.HANDLE_MAX.broken(
            f"handle {attach.handle} is over the handle-max of {context.limits.handle_max}"
        )
    if attach.handle in session.by_remote_handle:
        session.fail(rules.HANDLE_IN_USE.broken(f"attach on handle {attach.handle}, which is in use"))
        return
    if attach.unsettled is not None and not has_tags(attach.unsettled):
        text = "amqp:attach:list.unsettled: its keys are delivery-tags, which are octets, at most 32"
        session.fail(rules.FIELD.broken(text, scope="session"))
        return
    ours = not attach.role
    if (attach.name, ours) in session.failed:
        if attach.unsettled is None:
            text = f"attach of {attach.name!r}, which was detached with an error, without an unsettled map"
            session.fail(rules.ATTACH_AFTER_ERROR.broken(text))
            return
        del session.failed[attach.name, ours]
    link = names.find(attach.name, ours, session)
    if link is not None and (link.session is not session or link.remote is not None):
        _steal(link, names)
        link = None
    is_new = link is None
    if link is None:
        link = session.receiver(attach.name) if ours is Role.RECEIVER else session.sender(attach.name)
    if link.handle < 0 and not _reserve(session, link):
        return
    session.by_remote_handle[attach.handle] = link
    session.errant.pop(attach.handle, None)
    _share(link, attach)
    link.on_attach(attach)
    _check_count(link, attach)
    if link.terminus is not None and link.state is LinkState.ATTACHED and link.has_terminus():
        link.resume()
    most = context.limits.max_links
    if is_new and most is not None and len(names) > most:
        text = f"more than {most} links on one connection"
        link.refuse(error_of(rules.LINKS.broken(text)))
    elif link.state is not LinkState.DETACH_SENT:
        _tell_attached(session, link, attach)


def _share(link: Link, attach: Attach) -> None:
    """Hold once what the peer's attach repeats of ours: of thousands of links that is a fifth."""
    for field in ("name", "source", "target"):
        ours, theirs = getattr(link, field), getattr(attach, field)
        # What is equal may be of another type still, as 1 and True in a filter.
        if ours is not None and theirs == ours and encode(theirs) == encode(ours):
            setattr(attach, field, ours)


def _check_count(link: Link, attach: Attach) -> None:
    """A sender has to say where it counts from, unless it is about to refuse the link (2.6.3, 2.7.3)."""
    if (
        attach.initial_delivery_count is None
        and attach.role is Role.SENDER
        and link.context.strict.initial_delivery_count
        and link.has_terminus()
    ):
        link.fail(rules.INITIAL_DELIVERY_COUNT.broken("a sender attached without an initial-delivery-count"))


def _tell_attached(session: Session, link: Link, attach: Attach) -> None:
    """Let the adapter see the link, unless its terminus is of a type that nobody here knows."""
    unknown = next((t for t in (attach.source, attach.target) if isinstance(t, Described)), None)
    if unknown is None:
        session.emit_attached(link)
        return
    fault = rules.TERMINUS.broken(f"terminus {unknown.descriptor!r} is not known here")
    if link.state is LinkState.ATTACH_RCVD:
        link.refuse(error_of(fault))
    else:
        link.fail(fault)


def _steal(link: Link, names: LinkNames) -> None:
    """The peer attaches a link of this name anew: the old one is over, and its name is free (2.6.1)."""
    if link.state is not LinkState.DETACH_SENT:
        link.fail(rules.ONE_ATTACHMENT.broken("attached anew"), closed=False)
    if link.state is LinkState.DETACHED:
        link.lost()
        names.release(link)


def _reserve(session: Session, link: Link) -> bool:
    """Take the handle that our attach will have; False where no answer is possible any more."""
    try:
        link.handle = session.free_handle()
    except LocalProtocolError as failure:
        session.names.release(link)
        session.fail(rules.HANDLES.broken(str(failure)))
        return False
    session.bind(link)
    return True
