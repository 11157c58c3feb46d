"""The mutants of the page of AMQP/Fast, by the number of the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .requirement import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant


def _each(*changes: tuple[str, str]) -> tuple[Mutant, ...]:
    return tuple((Change(old, new),) for old, new in changes)


_COMMIT: Final = (
    "            self._sent = 0\n            numbers = self.numbers.end_transaction()\n",
    "            self._sent = 0\n            numbers = ()\n",
)

MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {
    "2.2.4-1": _each(
        ("    size = len(payload) + 1\n    head = _SHORT", "    size = len(payload)\n    head = _SHORT"),
        (
            "    head = _SHORT.pack(size) if size < _ESCAPE else",
            "    head = _SHORT.pack(size) if size <= _ESCAPE else",
        ),
        (
            "    head = _SHORT.pack(size) if size < _ESCAPE else",
            "    head = _SHORT.pack(size) if size < _ESCAPE - 1 else",
        ),
    ),
    "2.2.8.4-1": _each(
        ("        self.paused = command.flow_pause\n", ""),
        ("        if handle.paused:\n            return False\n", ""),
    ),
    "2.2.8.5-1": _each(
        (
            "            if each > number:\n                break\n            found.append(each)\n        for each in found:\n            self._take",
            "            if each >= number:\n                break\n            found.append(each)\n        for each in found:\n            self._take",
        ),
        (
            "            if each > number:\n                break\n            found.append(each)\n        for each in found:\n            self._take",
            "            if each != number:\n                continue\n            found.append(each)\n        for each in found:\n            self._take",
        ),
    ),
    "2.2.8.7-1": _each(
        (
            "            content = look(self, node, lambda each: each is wanted)\n",
            "            content = look(self, node, lambda each: True)\n",
        ),
    ),
    "2.2.12-1": _each(
        (
            "begin(self.tuning.heartbeat, self._heartbeats.patience, now)\n",
            "begin(self.tuning.heartbeat, 2 * self.limits.heartbeat, now)\n",
        ),
        ("patience = 2 * self.limits.heartbeat ", "patience = self.limits.heartbeat "),
        ("patience = 2 * self.limits.heartbeat ", "patience = 3 * self.limits.heartbeat "),
    ),
    "3.2.3.1-2": _each(
        (
            "        found.setdefault(name, value)\n    return found, after\n",
            "        found[name] = value\n    return found, after\n",
        )
    ),
    "3.2.5.1-1": _each(
        (
            "        if most and len(self._channels) > most:\n",
            "        if most and len(self._channels) > most + 1:\n",
        ),
        ("        if most and len(self._channels) > most:\n", "        if False:\n"),
    ),
    "3.2.5.1-2": _each(
        ("            if self._sent > limit:\n", "            if self._sent >= limit:\n"),
        ("            if self._sent > limit:\n", "            if False:\n"),
        ("            self._sent = 0\n            numbers =", "            numbers ="),
    ),
    "3.2.6-1": _each(
        ("        if opened.virtual_path not in self._dialect.virtual_paths:\n", "        if False:\n")
    ),
    "3.2.6-2": _each(
        (
            "        if (opened.client_name, user_of(identity)) in self._dialect.active:\n",
            "        if False:\n",
        ),
        ("            del self._dialect.active[client.owner]\n", "            pass\n"),
    ),
    "3.3.3-1": _each(
        (
            "        self.last += 1\n        if not unreliable:\n",
            "        self.last = self._counts[handle] + 1\n        if not unreliable:\n",
        ),
        (
            "            handle.channel.leases[number] = lease\n",
            "            handle.channel.leases[number + 1] = lease\n",
        ),
    ),
    "3.3.3-2": _each(
        (
            '                raise ReplyError(_R.COMMAND_NOT_VALID, "channel ack with only peer services", Level.CHANNEL)\n',
            "                return\n",
        ),
    ),
    "3.3.4-1": _each(_COMMIT),
    "3.3.5-1": _each(_COMMIT),
    "3.5.2.2-1": _each(
        (
            "                if self._container.nodes.get(name) is each.node:\n                    self._container.remove_node(name)\n",
            "                pass\n",
        ),
    ),
    "3.5.2.2-2": _each(
        (
            "        if temporary is not None and temporary.node is node and temporary.owner != owner:\n",
            "        if False:\n",
        ),
        (
            "        if there is not None and there.owner == peer.owner and _is_of(there.node, service):\n",
            "        if there is not None and _is_of(there.node, service):\n",
        ),
        ("                there.node.purge()\n", "                pass\n"),
        (
            '        if name in self._container.nodes:\n            raise RefusedError(Condition.UNAUTHORIZED_ACCESS, f"the name',
            '        if False:\n            raise RefusedError(Condition.UNAUTHORIZED_ACCESS, f"the name',
        ),
    ),
    "3.5.2.3-2": _each(
        (
            "                if _is_of(node, each.service) and node.address.startswith(each.prefix):\n",
            "                if _is_of(node, each.service):\n",
        ),
        ("        self.channel.peer.destinations.watch(prefix)\n", ""),
    ),
    "3.5.2.3-4": _each(
        (
            "            return [each for each in list(nodes.values()) if _is_of(each, service) and each.accepts_senders]\n",
            "            return [each for each in list(nodes.values()) if _is_of(each, service) and each.accepts_senders][:1]\n",
        ),
        (
            "            return [each for each in list(nodes.values()) if _is_of(each, service) and each.accepts_senders]\n",
            "            return [each for each in list(nodes.values()) if each.accepts_senders]\n",
        ),
    ),
    "3.5.3-1": _each(("        elif command.out_of_band:\n", "        elif False:\n")),
    "3.5.4-1": _each(
        (
            "numbers.count(handle.engine.id) < handle.prefetch\n",
            "numbers.count(handle.engine.id) <= handle.prefetch\n",
        ),
        ("            self.prefetch += command.prefetch\n", "            self.prefetch += 99\n"),
    ),
    "3.5.4-2": _each(
        ("        not_from = origin_of(peer) if command.no_local else None\n", "        not_from = None\n")
    ),
    "3.5.4-3": _each(
        (
            "        if self._unreliable:\n            lease.accepted()\n",
            "        if self._unreliable:\n            pass\n",
        ),
    ),
    "3.5.4-4": _each(
        (
            "                name=identifier, owner=owner, lasting=math.inf, durable=True, selection=selection\n",
            "                name=identifier, owner=owner, lasting=math.inf, durable=True, selection=None\n",
        ),
        (
            "                name=identifier, owner=owner, lasting=math.inf, durable=True, selection=selection\n",
            "                name=identifier, owner=owner, lasting=math.inf, durable=False, selection=selection\n",
        ),
    ),
    "3.5.4-5": _each(("        return matches is None or matches(message)\n", "        return True\n")),
    "3.5.7-1": _each(
        ("        if self._unacked.get(number) != handle:\n", "        if False:\n"),
        (
            "            return False\n        self._take(number)\n        return True\n",
            "            return False\n        return True\n",
        ),
    ),
    "3.5.9-1": _each(
        (
            "                confirm_tag=command.confirm_tag, reply_code=_R.MESSAGE_NOT_FOUND, reply_text=text\n",
            "                confirm_tag=command.confirm_tag, reply_code=_R.NOT_ALLOWED, reply_text=text\n",
        ),
        (
            "        if content is None:\n            text = reply_text(_R.MESSAGE_NOT_FOUND)\n",
            "        if False:\n            text = reply_text(_R.MESSAGE_NOT_FOUND)\n",
        ),
    ),
    "3.5.12-1": _each(
        ("        if ranges and ranges[-1][1] == number - 1:\n", "        if False:\n"),
        ('        term = b"%d" % first if first == last else', '        term = b"%d" % first if False else'),
    ),
    "3.5.12-2": _each(
        (
            '        if size > largest:\n            return b" ".join(terms), highest\n',
            '        if size > largest:\n            return b" ".join(terms), 0\n',
        ),
        ("        size += len(term) + bool(terms)\n", "        size += len(term)\n"),
        (
            '        if size > largest:\n            return b" ".join(terms)',
            '        if size > largest + 1:\n            return b" ".join(terms)',
        ),
    ),
    "3.5.13-1": _each(
        (
            '        if prepared is not None and prepared.content_hash.lower() not in ("", hash_of(body)):\n',
            "        if False:\n",
        ),
    ),
    "3.5.14-1": _each(
        (
            "        if head.body_size > limit:\n            raise ReplyError(\n                _R.MESSAGE_TOO_LARGE",
            "        if False:\n            raise ReplyError(\n                _R.MESSAGE_TOO_LARGE",
        )
    ),
}
