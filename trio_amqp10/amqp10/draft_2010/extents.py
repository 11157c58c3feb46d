"""The ranges of transfers in an extent of the peer's disposition (8.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.engine.serial_numbers import add, distance
from trio_amqp10.amqp10.spec.transport import Role

from .flow_states import credit_of

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.session import Session

    from .spec import transport as draft


def ranges_of(session: Session, role: bool, extent: draft.Extent, last: int) -> list[tuple[int, int, bool]]:
    """Return the ranges of ids in an extent, and whether each declares a transaction."""
    first = extent.first
    credit = credit_of(session)
    declared = [each for each in credit.declares if _within(each, first, last)]
    if role is not Role.RECEIVER or (extent.handle is None and not declared):
        if extent.handle is None:
            return [(first, last, False)]
        declared = []
    link = None if extent.handle is None else session.by_remote_handle.get(extent.handle)
    held: Any = session.settlement.outgoing if role is Role.RECEIVER else session.settlement.incoming
    found = [
        each
        for each in tuple(held)
        if _within(each, first, last) and (extent.handle is None or held[each].link is link)
    ]
    if extent.settled or extent.state is not None:
        credit.declares.difference_update(declared)
    ranges: list[tuple[int, int, bool]] = []
    for each in found:
        declares = each in declared
        if ranges and not declares and not ranges[-1][2] and add(ranges[-1][1], 1) == each:
            ranges[-1] = (ranges[-1][0], each, False)
        else:
            ranges.append((each, each, declares))
    return ranges


def _within(each: int, first: int, last: int) -> bool:
    return distance(each, first) >= 0 and distance(last, each) >= 0
