"""The mutants of the page of the draft of 2010, by the number of the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .requirement import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant


def _each(*changes: tuple[str, str]) -> tuple[Mutant, ...]:
    return tuple((Change(old, new),) for old, new in changes)


_FREE: Final = "        return max(0, distance(self.limit, self.count))\n"
_OFFSET: Final = (
    "        if fragment.fragment_offset is not None and fragment.fragment_offset != self.size:\n"
)

MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {
    "III 4.1-2": _each(
        ("            self._connection.check_opened(body)\n", ""),
    ),
    "III 4.2-1": _each(
        (
            "            self.check(len(octets))\n            self.hold_until_open()\n",
            "            self.check(len(octets))\n",
        ),
    ),
    "III 5.1-1": _each(
        (
            "        remote_channel=performative.remote_channel,\n        offered_capabilities=tuple(performative.offered",
            "        remote_channel=None,\n        offered_capabilities=tuple(performative.offered",
        ),
        (
            "        remote_channel=performative.remote_channel,\n        offered_capabilities=tuple(performative.offered",
            "        remote_channel=performative.remote_channel or 0,\n        offered_capabilities=tuple(performative.offered",
        ),
    ),
    "III 5.2-1": _each(
        (
            "        if detach.error is not None and notes.ends_session:\n",
            "        if detach.error is not None:\n",
        ),
        ("        if detach.error is not None and notes.ends_session:\n", "        if False:\n"),
    ),
    "III 5.4-1": _each(
        (
            "            if session.state in _READING:\n                session.fail(fault)\n",
            "            pass\n",
        ),
    ),
    "III 6.2-1": _each(
        (
            "        notes = credit.by_remote_handle[body.handle]\n        message = notes.incoming\n",
            "        notes = credit.by_handle[body.handle]\n        message = notes.incoming\n",
        ),
        (
            "                handle=detach.handle,\n                local=None if",
            "                handle=detach.handle + 1,\n                local=None if",
        ),
    ),
    "III 6.5-1": _each(
        (
            "                local=None if detach.closed else notes.local or draft.Linkage(),\n",
            "                local=notes.local or draft.Linkage(),\n",
        ),
        (
            "                local=None if detach.closed else notes.local or draft.Linkage(),\n",
            "                local=None,\n",
        ),
    ),
    "III 6.5-2": _each(
        ("            if body.local is None:\n                notes.remote = None\n", ""),
    ),
    "III 6.6-1": _each(
        ("    done = int(not more)\n", "    done = 1\n"),
        ("    done = int(not more)\n", "    done = 0\n"),
        ("max(0, message.credit + 1 - done)\n", "message.credit + 1\n"),
    ),
    "III 6.6-2": _each(
        (
            "            state.transfer_count is not None and distance(state.transfer_count, link.delivery_count or 0) > 0\n",
            "            False\n",
        ),
    ),
    "III 6.6-3": _each(
        (
            "                count, link_credit = link.delivery_count, _FAR\n",
            "                count, link_credit = link.delivery_count, 0\n",
        ),
        ("            notes.unlimited = link_credit is None\n", "            notes.unlimited = False\n"),
    ),
    "III 6.6-5": _each(
        (
            "        base = notes.first_count if count is None else count\n",
            "        base = units.count if count is None else count\n",
        ),
    ),
    "III 6.6-6": _each(
        ("        if ahead or state.available is not None:\n", "        if ahead:\n"),
        (
            "            available=state.available,\n            drain=bool",
            "            available=None,\n            drain=bool",
        ),
    ),
    "III 6.6-9": _each(
        ("        self._used += self.free\n", "        self._used = self.free\n"),
        ("        return start, self._used * self._unit\n", "        return start, None\n"),
        ("        if units.rest is not None and units.free:\n", "        if False:\n"),
    ),
    "III 6.6-10": _each(
        ("            self.count = add(self.count, left)\n", "            self.count = add(self.count, 1)\n"),
        (
            "        left = max(1, -(-total // self._unit)) - self._used\n",
            "        left = total // self._unit - self._used\n",
        ),
        (_FREE, "        return max(0, distance(self.limit, self.count) + 1)\n"),
    ),
    "III 6.9-1": _each(
        (
            "            echo=echo,\n            properties=properties,\n        )\n        self._give(channel, flow)\n",
            "            echo=False,\n            properties=properties,\n        )\n        self._give(channel, flow)\n",
        ),
    ),
    "III 6.10-1": _each(
        (
            "        elif (body.transfer_id, body.delivery_tag) != (message.transfer_id, message.tag):\n",
            "        elif False:\n",
        ),
    ),
    "III 6.10-2": _each(
        ("                    settled=bool(extent.settled),\n", "                    settled=False,\n"),
        (
            "            last = extent.first if extent.last is None else extent.last\n",
            "            last = extent.first\n",
        ),
    ),
    "III 6.12-1": _each(
        ("        if fragment.last:\n            self._is_open = False\n", "        self._is_open = False\n"),
        (
            "            self._sections.append((fragment.format_code, bytearray()))\n",
            "            self._sections.append((0, bytearray()))\n",
        ),
        ("        section += octets\n", "        section[:] = octets\n"),
    ),
    "III 6.12-2": _each(
        (
            "            self._write_part(session, notes, message, part, more=True)\n",
            "            self._write_part(session, notes, message, part, more=False)\n",
        ),
        (
            "            self._write_part(session, notes, message, last, more=stop is not None)\n",
            "            self._write_part(session, notes, message, last, more=True)\n",
        ),
    ),
    "III 6.12-4": _each(
        (
            "        if body.aborted:\n            notes.drop_incoming()\n            self._give(channel, _head(body))\n            return\n",
            "",
        ),
    ),
    "III 6.12-5": _each(
        (_OFFSET, "        if False:\n"),
        (
            '            if self._is_open:\n                raise invalid_field("a section begins',
            '            if False:\n                raise invalid_field("a section begins',
        ),
        ("        elif not self._is_open:\n", "        elif False:\n"),
    ),
    "III 7.1-1": _each(
        (
            "        max_frame_size=_ANY_SIZE if body.max_frame_size is None else body.max_frame_size,\n",
            "        max_frame_size=4096 if body.max_frame_size is None else body.max_frame_size,\n",
        ),
    ),
    "III 7.1-3": _each(
        ("    if ours == 0 or theirs == 0:\n", "    if ours == 0:\n"),
        (
            "    return 2000 * min(*proposed, _MAX_HEARTBEAT) if proposed else None\n",
            "    return 2000 * max(proposed) if proposed else None\n",
        ),
        (
            "    return 2000 * min(*proposed, _MAX_HEARTBEAT) if proposed else None\n",
            "    return 1000 * min(*proposed, _MAX_HEARTBEAT) if proposed else None\n",
        ),
    ),
    "III 7.3-1": _each(
        (
            "            timeout = max(timeout, terminus.timeout)\n",
            "            timeout = terminus.timeout\n",
        ),
        (
            "            durable = durable or terminus.durable != final.TerminusDurability.NONE\n",
            "            durable = terminus.durable != final.TerminusDurability.NONE\n",
        ),
        (
            "                expiry = max(expiry, Symbol(terminus.expiry_policy), key=_LONGEST.index)\n",
            "                pass\n",
        ),
    ),
    "III 7.3-3": _each(
        (
            "        left = max(1, -(-total // self._unit)) - self._used\n",
            "        left = max(1, total // self._unit) - self._used\n",
        ),
        (
            "        left = max(1, -(-total // self._unit)) - self._used\n",
            "        left = -(-total // self._unit) - self._used\n",
        ),
    ),
    "III 7.3-5": _each(
        (
            "        if link.max_message_size is not None and message.size > link.max_message_size:\n            self._refuse(",
            "        if False:\n            self._refuse(",
        ),
    ),
    "III 8.6-1": _each(
        ("        base = INITIAL_ID if lowest is None else lowest\n", "        base = INITIAL_ID\n"),
        (
            "        free = 0 if self._limit is None else max(0, distance(self._limit, next_id))\n",
            "        free = 0 if self._limit is None else max(0, distance(self._limit, next_id)) + 1\n",
        ),
        (
            "    return next(iter(session.settlement.outgoing), session.next_delivery_id)\n",
            "    return session.next_delivery_id\n",
        ),
    ),
    "III 8.6-3": _each(
        ("            credit.check(body.transfer_id)\n", ""),
    ),
    "III 8.10-1": _each(
        (
            "        if _within(each, first, last) and (extent.handle is None or held[each].link is link)\n",
            "        if _within(each, first, last)\n",
        ),
    ),
    "III 8.11-1": _each(
        ("        start = self._used * self._unit\n", "        start = 0\n"),
    ),
    "IV 2.1-1": _each(
        ('    if header is None and not attrs and not delivery_attrs:\n        return b""\n', ""),
    ),
    "IV 2.2-2": _each(
        (
            "            former_acquirers=None if header is None else int(not given.first_acquirer),\n",
            "            former_acquirers=None if header is None else int(given.first_acquirer),\n",
        ),
        (
            "            former_acquirers=None if header is None else int(not given.first_acquirer),\n",
            "            former_acquirers=0,\n",
        ),
    ),
    "IV 2.2-4": _each(
        ("        header = draft.Header(format_code=message_format)\n", "        header = draft.Header()\n"),
    ),
    "IV 2.3-1": _each(
        (
            "    return str(value).encode()\n\n\ndef _draft_body",
            "    return repr(value).encode()\n\n\ndef _draft_body",
        ),
        (
            "        correlation_id=_id_octets(properties.correlation_id),\n        content_length",
            "        correlation_id=None,\n        content_length",
        ),
    ),
    "IV 2.3-2": _each(
        ("    length = sum(len(octets) for _, octets in body)\n", "    length = len(body)\n"),
        ("        content_length=length,\n", "        content_length=length + 1,\n"),
    ),
    "IV 2.5-1": _each(
        (
            "        if key is not None:\n            self._reject(channel, session, body, key)\n",
            "        if False:\n            self._reject(channel, session, body, key)\n",
        ),
    ),
    "IV 3.3-1": _each(
        (
            "        attrs[_REJECTED] = Error(condition=Symbol(condition), description=description)\n",
            "        pass\n",
        ),
    ),
    "IV 5.3-2": _each(
        (
            "                distribution_mode=terminus.distribution_mode or final.DistributionMode.MOVE,\n",
            "                distribution_mode=terminus.distribution_mode,\n",
        ),
    ),
    "V 1-1": _each(
        (
            "                    credit_of(session).declares.add(message.transfer_id)\n",
            "                    pass\n",
        ),
    ),
    "V 1-5": _each(
        ("            message.state = TransferState(txn_id=txn_id)\n", "            pass\n"),
    ),
}
