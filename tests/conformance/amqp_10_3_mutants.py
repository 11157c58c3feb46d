"""The mutants of the page of AMQ Protocol 10.3, by the lines of the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .requirement import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant


def _each(*changes: tuple[str, str]) -> tuple[Mutant, ...]:
    return tuple((Change(old, new),) for old, new in changes)


MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {
    "516-518": _each(
        ("        return self._consuming.fits(size)\n", "        return True\n"),
    ),
    "561-564": _each(
        (
            '        self._channel.reply(self._channel.make("channel.alert", **alert))\n\n    def _returned',
            "\n    def _returned",
        ),
        (
            '        if refusal is None or publish.state == "released" or self._channel.over:\n            return\n        fault',
            "        if self._channel.over:\n            return\n        fault",
        ),
    ),
    "642-643": _each(
        (
            "        for number in [each for each, (owner, _) in self._given.items() if owner is channel]:\n",
            "        for number in ():\n",
        ),
    ),
    "650-652": _each(
        (
            '        if owner is not channel:\n            raise ReplyError(ReplyCode091.NOT_ALLOWED, f"ticket',
            '        if False:\n            raise ReplyError(ReplyCode091.NOT_ALLOWED, f"ticket',
        ),
        (
            '            raise ReplyError(ReplyCode091.NOT_ALLOWED, f"ticket {number} belongs',
            '            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"ticket {number} belongs',
        ),
    ),
    "685, 855, 972": _each(
        (
            '        if ticket is None:\n            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"no ticket',
            '        if ticket is None:\n            return\n            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"no ticket',
        ),
        (
            "        if not self._needed:\n            return\n        owner, ticket",
            "        if True:\n            return\n        owner, ticket",
        ),
    ),
    "781-782": _each(
        ("        there.check_owner(peer)\n", ""),
        ("        exclusive = exclusive or there.owner is channel.peer\n", ""),
    ),
    "692-696": _each(
        ("            if exchange.grace:\n", "            if False:\n"),
        (
            "        for name in [name for name, due in self._unbound.items() if due <= now]:\n",
            "        for name in ():\n",
        ),
        (
            "        self._unbound.pop(source, None)\n        if self.bindings.add",
            "        if self.bindings.add",
        ),
    ),
    "784-790": _each(
        ('        arguments["x-expires"] = max(1, int(options.grace * 1000))\n', "        pass\n"),
        (
            '        arguments["x-expires"] = max(1, int(options.grace * 1000))\n',
            '        arguments["x-expires"] = 1\n',
        ),
    ),
    "870-877": _each(
        ("            dead_letters=True,\n", "            dead_letters=False,\n"),
        ("            yield from queue.end_available_in_steps()\n", "            pass\n"),
    ),
    "973, 1181, 1368": _each(
        (
            "    if tag in numbers.consumers or tag in (numbers.asked or ()):\n        raise ReplyError(",
            "    if False:\n        raise ReplyError(",
        ),
    ),
    "974": _each(
        (
            "        if self._size and self.octets and self.octets + size > self._size:\n",
            "        if self._size and self.octets + size > self._size:\n",
        ),
        (
            "        if self._size and self.octets and self.octets + size > self._size:\n",
            "        if False:\n",
        ),
    ),
    "976, 1186, 1374": _each(
        (
            "            refused = AccessRefusedError if method.plan.name == _BASIC else LockedError",
            "            refused = AccessRefusedError",
        ),
        (
            "            refused = AccessRefusedError if method.plan.name == _BASIC else LockedError",
            "            refused = LockedError",
        ),
        (
            "        if self.is_taken(node, exclusive=method.exclusive):\n",
            "        if self.is_taken(node, exclusive=False):\n",
        ),
        (
            "        if self.is_taken(node, exclusive=method.exclusive):\n",
            "        if method.exclusive and self.is_taken(node, exclusive=True):\n",
        ),
    ),
    "986-988": _each(
        ("        if waiting is not None:\n            waiting[1].released()\n", ""),
        (
            "        if waiting is not None:\n            waiting[1].released()\n",
            "        if waiting is not None:\n            waiting[1].accepted()\n",
        ),
    ),
    "1093": _each(
        ("        return not payload and self._host.profile.aborts_content\n", "        return False\n"),
        (
            "            self.numbers.deliveries.add(tag, settled=True)\n",
            "            self.numbers.deliveries.add(tag, settled=False)\n",
        ),
        ("        elif content.is_aborted_by(payload):\n            self._abort_content()\n", ""),
    ),
    "1096": _each(
        (
            "    lease.modified(failed=True, undeliverable_here=True, annotations=None)\n\n\ndef _refuse",
            "    lease.modified(failed=True, undeliverable_here=False, annotations=None)\n\n\ndef _refuse",
        ),
        (
            "    lease.modified(failed=True, undeliverable_here=True, annotations=None)\n\n\ndef _refuse",
            "    lease.modified(failed=False, undeliverable_here=True, annotations=None)\n\n\ndef _refuse",
        ),
    ),
    "1454": _each(
        (
            '    if not numbers.deliveries.transactional:\n        raise _refused("channel is not transactional")\n    _commit(',
            "    _commit(",
        ),
    ),
    "1718-1763": _each(
        ("        else:\n            self.attach()\n\n    def attach", "\n    def attach"),
    ),
    "1508-1509": _each(
        ("        self._finish(True)\n", "        self._finish(False)\n"),
        ("        self._finish(False)\n", "        self._finish(True)\n"),
        (
            '        if self.over:\n            raise LocalProtocolError(f"the branch',
            '        if False:\n            raise LocalProtocolError(f"the branch',
        ),
    ),
}
