"""Handle an attach of the peer: new, an answer, or a stolen link (2.6.1, 2.6.3).

Knows no transfer and no disposition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .error_encoding import error_of
from .states import LinkState
from .unsettled_map import has_tags

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.transport import Attach

    from .link import Link
    from .link_names import LinkNames
    from .session import Session


def on_attach(session: Session, attach: Attach) -> None:
    """Process an attach that the peer sent, as a request or as an answer.

    Raises:
        RemoteProtocolError: the handle is over our handle-max (2.7.2), or the peer resumes links at too high
            a rate. Both end the connection.
        LocalProtocolError: the answer does not fit the peer's frame size.
    """
    context, names = session.context, session.names
    context.charge_resumed()
    if attach.handle > context.limits.handle_max:
        if context.strict.handle_max:
            raise rules.HANDLE_MAX.broken(
                f"handle {attach.handle} is over the handle-max of {context.limits.handle_max}"
            )
        context.tolerances.note(rules.HANDLE_MAX)
    if attach.handle in session.by_remote_handle:
        session.fail(rules.HANDLE_IN_USE.broken(f"attach on handle {attach.handle}, which is in use"))
        return
    if attach.unsettled is not None and not has_tags(attach.unsettled):
        text = "amqp:attach:list.unsettled: its keys are delivery-tags, which are octets, at most 32"
        session.fail(rules.FIELD.broken(text, scope="session"))
        return
    ours = not attach.role
    # A link that we detached with an error must be resumed, not attached as if nothing had happened: its
    # attach needs an unsettled map (2.6.5).
    if session.failed and (attach.name, ours) in session.failed:
        if attach.unsettled is None:
            if context.strict.attach_after_error:
                text = (
                    f"attach of {attach.name!r}, which was detached with an error, without an unsettled map"
                )
                session.fail(rules.ATTACH_AFTER_ERROR.broken(text))
                return
            context.tolerances.note(rules.ATTACH_AFTER_ERROR)
        del session.failed[attach.name, ours]
    link = names.find(attach.name, ours, session)
    # The peer attached this link before, or attaches it on another session: it steals its own link (2.6.1).
    if link is not None and (link.session is not session or link.remote is not None):
        _steal(link, names)
        link = None
    # Otherwise a known link means that this attach answers ours; an unknown one is the peer's request
    # (2.6.3).
    is_new = link is None
    if link is None:
        link = session.receiver(attach.name) if ours is Role.RECEIVER else session.sender(attach.name)
    if link.handle < 0 and not _reserve(session, link):
        return
    session.by_remote_handle[attach.handle] = link
    if session.errant:
        session.errant.pop(attach.handle, None)
    _share(link, attach)
    link.on_attach(attach)
    _check_count(link, attach)
    # Our attach came first and this is the answer, so both unsettled maps are known: resume (2.6.13).
    if link.terminus is not None and link.state is LinkState.ATTACHED and link.has_terminus():
        link.resume()
    # The link is refused only after the attach was processed, because the standard refuses by attach and
    # detach (2.6.3).
    most = context.limits.max_links
    if is_new and most is not None and len(names) > most:
        text = f"more than {most} links on one connection"
        link.refuse(error_of(rules.LINKS.broken(text)))
    elif link.state is not LinkState.DETACH_SENT:
        _report_attached(session, link, attach)


def _share(link: Link, attach: Attach) -> None:
    """Share the objects that both attaches have in common, to save memory.

    Without this, one fifth of the memory of a connection with thousands of links is duplicates.
    """
    for field in ("name", "source", "target"):
        ours, theirs = getattr(link, field), getattr(attach, field)
        # Python's equality ignores AMQP types (1 == True in a filter), so the octets are compared as well.
        if ours is not None and theirs == ours and encode(theirs) == encode(ours):
            setattr(attach, field, ours)


def _check_count(link: Link, attach: Attach) -> None:
    """Fail or count a sender that attached without initial-delivery-count.

    A sender that is about to refuse the link may leave it out (2.6.3, 2.7.3).
    """
    if attach.initial_delivery_count is None and attach.role is Role.SENDER and link.has_terminus():
        rule = rules.INITIAL_DELIVERY_COUNT
        if link.context.strict.initial_delivery_count:
            link.fail(rule.broken("a sender attached without an initial-delivery-count"))
        else:
            link.context.tolerances.note(rule)


def _report_attached(session: Session, link: Link, attach: Attach) -> None:
    """Report the link to the adapter, or refuse a terminus of an unknown type."""
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
    """End the old link, because the peer attaches the same name again (2.6.1)."""
    if link.state is not LinkState.DETACH_SENT:
        link.fail(rules.ONE_ATTACHMENT.broken("the peer attached a link of this name again"), closed=False)
    if link.state is LinkState.DETACHED:
        link.lost()
        names.release(link)


def _reserve(session: Session, link: Link) -> bool:
    """Reserve the handle of our attach; return False if the session has none left."""
    try:
        link.handle = session.free_handle()
    except LocalProtocolError as failure:
        session.names.release(link)
        session.fail(rules.HANDLES.broken(str(failure)))
        return False
    session.bind(link)
    return True
