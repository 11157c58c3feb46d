"""The mutants of the page of AMQP 0-9-1, by the number of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .requirement import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant


def _one(old: str, new: str) -> tuple[Mutant, ...]:
    return ((Change(old, new),),)


_EQUIVALENT_QUEUE: Final = _one(
    '        check_equivalent("queue", name, received, there.properties, _QUEUE, self.virtual_host)\n', ""
)
_EQUIVALENT_EXCHANGE: Final = _one(
    '            check_equivalent(\n                "exchange", name, given | received, there.properties, _EXCHANGE, self.virtual_host\n            )\n',
    "",
)
_RESERVED: Final = '        _check_prefix("exchange", name)\n'
_RESERVED_EXCHANGE: Final = _one(
    _RESERVED + "        exchange = self.build_exchange(", "        exchange = self.build_exchange("
)
_RESERVED_QUEUE: Final = _one("    if method.queue.startswith(RESERVED):  # also", "    if False:  # also")
_NOT_THERE: Final = "        if exchange is None:\n            raise NotFoundError(f\"no {self.title_of('exchange', name)}\")\n"
_NO_EXCHANGE: Final = _one(
    _NOT_THERE, "        if exchange is None:\n            return self.exchanges[DEFAULT]\n"
)
_NO_QUEUE: Final = _one(
    "        if queue is None:\n            raise NotFoundError(f\"no {self.title_of('queue', name)}\")\n",
    "        if queue is None:\n            return self.declare_queue(name)[0]\n",
)
_TWICE: Final = _one("        if binding in self._all:\n", "        if False:\n")
_CLOSING: Final = _one(
    "        if self.state is ConnectionState.CLOSE_SENT:\n            self._take_closing(kind, channel, payload)\n        elif channel:",
    "        if channel:",
)

_UNBOUND: Final = _one(
    '        if binding in self.bindings:\n            if kind == "queue" and destination',
    '        if binding not in self.bindings:\n            raise NotFoundError(source)\n        if True:\n            if kind == "queue" and destination',
)

MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {
    "1.4.2-1": _one("        if queue.lasting and self._definitions is not None:\n", "        if False:\n"),
    "2.2.4-1": _one("        sends_reason = self.is_open or (", "        sends_reason = True or (")
    + _one(
        '        if self.capabilities.get("authentication_failure_close") is True:\n', "        if True:\n"
    ),
    "2.2.4-2": _one(
        '        if not self._lifecycle.permits(step):\n            raise LocalProtocolError(\n                f"{method.plan.name} cannot',
        '        if False:\n            raise LocalProtocolError(\n                f"{method.plan.name} cannot',
    )
    + _one(
        "        step, react = self.REACTIONS[method.plan.name]\n        self._lifecycle.receive(step)\n",
        "        step, react = self.REACTIONS[method.plan.name]\n",
    ),
    "2.3.3-1": _one(
        "        if size > largest and not (kind == HEADER and size <= largest_header):\n",
        "        if False:\n",
    )
    + _one(
        ' and plan.name == "channel.open" and number <= self.channel_max\n',
        ' and plan.name == "channel.open"\n',
    ),
    "2.3.3-2": _one(
        "            frame_max=limits.frame_max,\n            heartbeat=limits.heartbeat,\n        )\n        self.send(EndpointRole.SERVER",
        "            frame_max=0,\n            heartbeat=limits.heartbeat,\n        )\n        self.send(EndpointRole.SERVER",
    )
    + _one(
        "            channel_max=limits.channel_max,\n            frame_max=limits.frame_max,\n            heartbeat",
        "            channel_max=limits.channel_max - 1,\n            frame_max=limits.frame_max,\n            heartbeat",
    ),
    "2.3.3-3": _one(
        "        frame_max = _lower(method.frame_max, limits.frame_max)\n",
        "        frame_max = method.frame_max\n",
    )
    + _one(
        "        channel_max = _lower(method.channel_max, limits.channel_max)\n",
        "        channel_max = limits.channel_max\n",
    ),
    "2.3.7-1": _one(
        '        self._lifecycle.receive(Step.RECV_CLOSE)\n        self._write(self._make("channel.close-ok"))\n        self._end()',
        "        self._lifecycle.receive(Step.RECV_CLOSE)\n        self._end()",
    )
    + _one(
        '        self._write(self.methods.make("connection.close-ok"))\n        self._answered_close = True\n',
        "        self._answered_close = True\n",
    ),
    "2.3.7-2": _one(
        '        self._write(self.methods.make("connection.close-ok"))\n        self._answered_close = True\n',
        "        self._answered_close = True\n",
    )
    + _one(
        '            self._lifecycle.receive(Step.RECV_CLOSE)\n            self._write(self.methods.make("connection.close-ok"))\n',
        "            self._lifecycle.receive(Step.RECV_CLOSE)\n",
    )
    + _one(
        '            self._lifecycle.receive(Step.RECV_CLOSE)\n            self._write(self._make("channel.close-ok"))\n',
        "            self._lifecycle.receive(Step.RECV_CLOSE)\n",
    ),
    "3.1.1-1": _one(
        "            bodies.append(payload)\n        elif bodies and",
        "            bodies.append(payload[:-1])\n        elif bodies and",
    )
    + _one(
        "        published = Published(method.exchange, method.routing_key, raw, body, properties)\n",
        "        published = Published(method.exchange, method.routing_key, raw, body[:1], properties)\n",
    ),
    "3.1.1-2": _one(
        "        assert raw is not None\n        published = Published(",
        "        properties = replace(properties, app_id=None)\n        raw = properties.encode(USUAL)\n        published = Published(",
    ),
    "3.1.2-1": _one(
        "        step, react = self.REACTIONS[method.plan.name]\n        self._lifecycle.receive(step)\n",
        "        step, react = self.REACTIONS[method.plan.name]\n",
    ),
    "3.1.3.1-2": _one(
        "def _check_default(name: str) -> None:\n    if not name:\n",
        "def _check_default(name: str) -> None:\n    if False:\n",
    ),
    "3.1.3.6-1": _one(
        "        if kind not in KINDS:\n            raise PreconditionError(",
        "        if False:\n            raise PreconditionError(",
    ),
    "3.1.8-1": _one(
        "def _accept(lease: GivenLease) -> None:\n    lease.accepted()\n",
        "def _accept(lease: GivenLease) -> None:\n    lease.released()\n",
    )
    + _one(
        "            no_ack=method.no_ack,\n            exclusive=method.exclusive,\n",
        "            no_ack=False,\n            exclusive=method.exclusive,\n",
    ),
    "3.1.9-1": _one("            and engine.flowing\n", "")
    + _one("        self.flowing = method.active\n", ""),
    "3.1.10-1": _RESERVED_EXCHANGE + _RESERVED_QUEUE,
    "3.2.1-2": _one(
        "                request = requests.pop(0)\n", "                request = requests.pop()\n"
    ),
    "4.2.2-1": _one("            self.enqueue(profile.header)\n", "            pass\n"),
    "4.2.2-2": _one("            answer(self._profile.header)\n", ""),
    "4.2.3-1": _one(
        '        if buffer[end - 1] != FRAME_END:\n            self._ignores_input = True\n            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame that ends with {buffer',
        '        if False:\n            self._ignores_input = True\n            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame that ends with {buffer',
    ),
    "4.2.3-2": _one(
        "        if kind not in self._types:\n            raise ReplyError(ReplyCode091.FRAME_ERROR",
        "        if kind not in self._types:\n            raise ReplyError(ReplyCode091.COMMAND_INVALID",
    )
    + _one("        if self._ignores_input or not sends_reason:\n", "        if not sends_reason:\n"),
    "4.2.3-4": _one(
        "        for start in range(0, len(body), largest):\n            yield self.frame(BODY, channel, view[start : start + largest])\n",
        "        if body:\n            yield self.frame(BODY, channel, body)\n",
    )
    + _one(
        "            yield self.frame(BODY, channel, view[start : start + largest])\n",
        "            yield self.frame(BODY, channel, view[start : start + largest + 1])\n",
    ),
    "4.2.3-5": _one(
        "        if size > largest and not (kind == HEADER and size <= largest_header):\n",
        "        if False:\n",
    ),
    "4.2.3-6": _one(
        '        self.heartbeat: bytes = self.frame(HEARTBEAT, 0, b"")\n',
        '        self.heartbeat: bytes = self.frame(HEARTBEAT, 1, b"")\n',
    )
    + _one(
        "        if kind == METHOD and int.from_bytes(payload[:2]) in self.profile.channel_0:\n",
        "        if False:\n",
    ),
    "4.2.3-7": _one(
        "        if kind == METHOD and int.from_bytes(payload[:2]) in self.profile.channel_0:\n",
        "        if False:\n",
    ),
    "4.2.6-1": _one(
        "        if kind != self.expects:\n            raise ReplyError(\n                self._host",
        "        if False:\n            raise ReplyError(\n                self._host",
    ),
    "4.2.6.1-1": _one("    if class_id != expected.class_id or weight:\n", "    if weight:\n"),
    "4.2.6.1-2": _one(
        "    if class_id != expected.class_id or weight:\n", "    if class_id != expected.class_id:\n"
    ),
    "4.2.6.1-3": _one(
        '        else:\n            raise ReplyError(self.profile.codes.on_channel_0, "a content on channel 0")\n',
        "",
    ),
    "4.2.6.2-1": _one(
        "            bodies.append(payload)\n        elif bodies and",
        "            bodies[:] = [payload]\n        elif bodies and",
    ),
    "4.2.7-1": _one(
        '            if size:\n                raise ReplyError(ReplyCode091.FRAME_ERROR, f"a heartbeat with',
        '            if False:\n                raise ReplyError(ReplyCode091.FRAME_ERROR, f"a heartbeat with',
    ),
    "4.2.7-2": _one(
        "            if not self.output.wrote:\n                self.enqueue(self.profile.frames.heartbeat)\n",
        "            pass\n",
    )
    + _one(
        "        self._heartbeats.begin(heartbeat / 2, 2 * heartbeat, now)\n",
        "        self._heartbeats.begin(heartbeat * 2, 2 * heartbeat, now)\n",
    ),
    "4.2.7-3": _one(
        "        self._heartbeats.begin(heartbeat / 2, 2 * heartbeat, now)\n",
        "        self._heartbeats.begin(heartbeat / 2, heartbeat, now)\n",
    )
    + _one("        if not self.patience or not reading:\n", "        if not self.patience:\n"),
    "4.4-1": _one(
        "        if self._running or self._waits:\n            self._notices += (notice,)\n        else:\n            self.reply(notice)\n",
        "        self.reply(notice)\n",
    ),
    "4.10.1-1": _one("        if header.size > host.limits.max_message_size:\n", "        if False:\n")
    + _one("        self._host.count_partial(len(payload))\n", ""),
    "connection.start-1": _one("            answer(self._profile.header)\n", ""),
    "connection.start-3": _one(
        "        if (method.version_major, method.version_minor) != self._profile.version:\n",
        "        if False:\n",
    ),
    "connection.start-ok-3": _one(
        '        if self.capabilities.get("authentication_failure_close") is True:\n', "        if True:\n"
    )
    + _one(
        '        if self.capabilities.get("authentication_failure_close") is True:\n', "        if False:\n"
    ),
    "connection.tune-1": _one(
        "        if not FRAME_MIN <= method.frame_max <= limits.frame_max:\n",
        "        if not method.frame_max <= limits.frame_max:\n",
    ),
    "connection.tune-ok-1": _one(
        "        if not 1 <= method.channel_max <= limits.channel_max:\n",
        "        if not 1 <= method.channel_max:\n",
    )
    + _one(
        "        if not 1 <= method.channel_max <= limits.channel_max:\n",
        "        if not method.channel_max <= limits.channel_max:\n",
    ),
    "connection.tune-ok-2": _one(
        "        if not FRAME_MIN <= method.frame_max <= limits.frame_max:\n",
        "        if not FRAME_MIN <= method.frame_max:\n",
    ),
    "connection.close-1": _CLOSING,
    "connection.close-2": _one(
        '            self._lifecycle.receive(Step.RECV_CLOSE)\n            self._write(self.methods.make("connection.close-ok"))\n',
        "            self._lifecycle.receive(Step.RECV_CLOSE)\n",
    ),
    "connection.close-ok-1": _one(
        "            self._finish()\n            self.emit(self._lost(reason))\n",
        "            self._finish()\n",
    ),
    "channel.flow-2": _one("        self.flowing = method.active\n", "")
    + _one('        self._write(self._make("channel.flow-ok", active=method.active))\n', ""),
    "channel.flow-5": _one("            and not self._host.limits.flow_control\n", "")
    + _one(
        '            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "active=false")\n', "            pass\n"
    ),
    "channel.close-2": _one(
        '            self._lifecycle.receive(Step.RECV_CLOSE)\n            self._write(self._make("channel.close-ok"))\n',
        "            self._lifecycle.receive(Step.RECV_CLOSE)\n",
    ),
    "exchange-4": _one(
        "def _check_default(name: str) -> None:\n    if not name:\n",
        "def _check_default(name: str) -> None:\n    if False:\n",
    ),
    "exchange-5": _one(
        "def _check_default(name: str) -> None:\n    if not name:\n",
        "def _check_default(name: str) -> None:\n    if False:\n",
    ),
    "exchange.declare-2": _RESERVED_EXCHANGE,
    "exchange.declare-3": _one(
        "        name, given = name.translate(_DROPPED), dict(arguments or {})\n        _check_default(name)\n",
        "        given = dict(arguments or {})\n        _check_default(name)\n",
    ),
    "exchange.declare-4": _EQUIVALENT_EXCHANGE,
    "exchange.declare-5": _one(
        "        if kind not in KINDS:\n            raise PreconditionError(",
        "        if False:\n            raise PreconditionError(",
    ),
    "exchange.declare-6": _NO_EXCHANGE,
    "exchange.declare-7": _EQUIVALENT_EXCHANGE,
    "exchange.declare-8": _one(
        "        if durable and self._definitions is not None:\n            self._definitions.add_exchange(",
        "        if self._definitions is not None:\n            self._definitions.add_exchange(",
    )
    + _one(
        "        if durable and self._definitions is not None:\n            self._definitions.add_exchange(",
        "        if False:\n            self._definitions.add_exchange(",
    ),
    "exchange.declare-9": _one(
        "            if exchange is None or not exchange.auto_delete or self.bindings.is_source(source):\n",
        "            if exchange is None or not exchange.auto_delete:\n",
    ),
    "exchange.declare-10": _EQUIVALENT_EXCHANGE,
    "exchange.delete-1": _one(
        "        if exchange is None:\n            return\n        if if_unused",
        "        if exchange is None:\n            raise NotFoundError(name)\n        if if_unused",
    ),
    "exchange.delete-2": _one(
        "        if if_unused and self.bindings.is_source(name):\n", "        if False:\n"
    )
    + _one(
        "        if if_unused and self.bindings.is_source(name):\n",
        "        if self.bindings.is_source(name):\n",
    ),
    "exchange.bind-1": _TWICE,
    "exchange.bind-4": _one(
        "        else:\n            self.get_exchange(destination)\n        self.bindings.check",
        "        self.bindings.check",
    )
    + _NO_EXCHANGE,
    "queue.declare-3": _one("            name or _generated(), arguments,", "            name, arguments,")
    + _one('    return "amq.gen-" + base64', '    return "gen-" + base64'),
    "queue.declare-4": (
        *_RESERVED_QUEUE,
        (
            Change("    if method.queue.startswith(RESERVED):  # also", "    if False:  # also"),
            Change(
                '        _check_prefix("queue", name)\n        if name and self.queue_address(name).startswith(ADDRESSES):',
                "        if False:",
            ),
        ),
    ),
    "queue.declare-5": _one(
        "        name, given = name.translate(_DROPPED), dict(arguments or {})\n        there",
        "        given = dict(arguments or {})\n        there",
    ),
    "queue.declare-6": _NO_QUEUE,
    "queue.declare-7": _EQUIVALENT_QUEUE,
    "queue.declare-8": _one(
        "        if queue.lasting and self._definitions is not None:\n", "        if False:\n"
    ),
    "queue.declare-9": _one(
        "        if queue.lasting and self._definitions is not None:\n",
        "        if self._definitions is not None:\n",
    ),
    "queue.declare-10": _one("        if (there.owner is not None) != exclusive:\n", "        if False:\n")
    + _one(
        "        queues = list(self._exclusive.get(peer, ()))\n", "        queues: list[BrokerQueue] = []\n"
    ),
    "queue.declare-11": _one(
        "        if isinstance(queue, BrokerQueue):\n            queue.check_owner(peer)\n        return queue\n",
        "        return queue\n",
    )
    + _one("        there.check_owner(peer)\n", ""),
    "queue.declare-12": _EQUIVALENT_QUEUE,
    "queue.bind-1": _TWICE,
    "queue.bind-4": _one(
        "        if self.bindings.add(binding) and durable and self._definitions is not None:\n",
        "        if self.bindings.add(binding) and False:\n",
    )
    + _one(
        "        if self.bindings.add(binding) and durable and self._definitions is not None:\n",
        "        if self.bindings.add(binding) and self._definitions is not None:\n",
    ),
    "queue.bind-7": _one(
        '        if kind == "queue":\n            self.get_queue(destination, peer)\n        else:\n',
        '        if kind != "queue":\n',
    ),
    "queue.bind-8": _NO_EXCHANGE,
    "queue.bind-9": _one(
        "def _check_ends(source: str, kind: str, destination: str) -> None:\n    _check_default(source)\n",
        "def _check_ends(source: str, kind: str, destination: str) -> None:\n",
    ),
    "queue.purge-3": _NO_QUEUE,
    "queue.delete-2": _one(
        "        except NotFoundError:\n            return 0\n        if peer",
        "        except ValueError:\n            return 0\n        if peer",
    ),
    "queue.delete-3": _one("        if if_unused and queue.outlets:\n", "        if False:\n")
    + _one("        if if_unused and queue.outlets:\n", "        if queue.outlets:\n"),
    "queue.delete-4": _one("        if if_empty and count:\n", "        if False:\n")
    + _one("        if if_empty and count:\n", "        if count:\n"),
    "basic-6": _one(
        "            no_ack=method.no_ack,\n            exclusive=method.exclusive,\n",
        "            no_ack=False,\n            exclusive=method.exclusive,\n",
    ),
    "basic-7": _one(
        "def _accept(lease: GivenLease) -> None:\n    lease.accepted()\n",
        "def _accept(lease: GivenLease) -> None:\n    lease.released()\n",
    )
    + _one(
        "        self._settle(arrival.tags, _requeue if method.requeue else _refuse, removes=False)\n",
        "        self._settle(arrival.tags, _refuse, removes=False)\n",
    ),
    "basic.qos-1": _one(
        "    if method.prefetch_size:\n        raise ReplyError(", "    if False:\n        raise ReplyError("
    ),
    "basic.qos-2": _one(
        "            and (self._limit is None or self.out < self._limit)\n",
        "            and (self._limit is None or self.out <= self._limit)\n",
    )
    + _one("            window=self._prefetch,\n", "            window=None,\n")
    + _one("                    outlet.resize(count)\n", "                    pass\n"),
    "basic.consume-2": _one(
        "    if tag in numbers.consumers or tag in (numbers.asked or ()):\n        raise ReplyError(",
        "    if False:\n        raise ReplyError(",
    )
    + _one(
        "    if method.consumer_tag in numbers.consumers:\n        raise LocalProtocolError(",
        "    if False:\n        raise LocalProtocolError(",
    ),
    "basic.consume-4": _one(
        "        tag = method.consumer_tag or new_tag()\n        # At a topic",
        "        tag = method.consumer_tag or 'tag'\n        # At a topic",
    ),
    "basic.consume-5": _one(
        "        if self.is_taken(node, exclusive=method.exclusive) or (method.exclusive and single_active):\n",
        "        if self.is_taken(node, exclusive=False):\n",
    )
    + _one("(exclusive or (isinstance(first, ConsumerOutlet) and first.exclusive))", "exclusive"),
    "basic.consume-6": _one(
        "            wants=partial(is_of_another, peer.origin) if method.no_local and peer.habits.no_local else None,\n",
        "            wants=None,\n",
    ),
    "basic.cancel-2": _one(
        "            self._channel.peer.guard.forget(outlet)\n            outlet.stop()\n\n    def on_cancelled",
        "            self._channel.peer.guard.forget(outlet)\n\n    def on_cancelled",
    ),
    "basic.publish-1": _NO_EXCHANGE,
    "basic.publish-5": _one("        if publish.mandatory and released:\n", "        if False:\n")
    + _one("        if publish.mandatory and released:\n", "        if released:\n"),
    "basic.publish-6": _one(
        "    if method.immediate:\n        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED",
        "    if False:\n        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED",
    ),
    "basic.deliver-1": _one(
        "        lease.modified(failed=True, undeliverable_here=False, annotations=None)\n    else:\n        lease.released()",
        "        lease.released()\n    else:\n        lease.released()",
    ),
    "basic.deliver-2": _one(
        '    if tags is None:\n        raise _refused(f"unknown delivery tag {method.delivery_tag}")\n    return tags, 0\n\n\ndef _receive_confirm_select',
        '    if tags is None:\n        raise ReplyError(ReplyCode091.NOT_FOUND, "unknown tag")\n    return tags, 0\n\n\ndef _receive_confirm_select',
    ),
    "basic.deliver-3": _one(
        "        if tag < self.last or (tag == self.last and not self._may_repeat):\n", "        if False:\n"
    ),
    "basic.get-1": _one("        if not outlet.pull():\n", "        if outlet.pull():\n"),
    "basic.ack-1": _one("                if tag and each > tag:\n", "                if each > tag:\n")
    + _one("                if tag and each > tag:\n", "                if tag and each >= tag:\n")
    + _one(
        "def _accept(lease: GivenLease) -> None:\n    lease.accepted()\n",
        "def _accept(lease: GivenLease) -> None:\n    lease.released()\n",
    ),
    "basic.ack-2": _one(
        '    if tags is None:\n        raise _refused(f"unknown delivery tag {method.delivery_tag}")\n    return tags, 0\n\n\ndef _receive_confirm_select',
        '    if tags is None:\n        raise ReplyError(ReplyCode091.NOT_FOUND, "unknown tag")\n    return tags, 0\n\n\ndef _receive_confirm_select',
    ),
    "basic.reject-2": _one(
        "def _refuse(lease: GivenLease) -> None:\n    lease.rejected(None, None)\n\n\ndef _wake",
        "def _refuse(lease: GivenLease) -> None:\n    lease.accepted()\n\n\ndef _wake",
    )
    + _one(
        "        self._settle(arrival.tags, _requeue if method.requeue else _refuse, removes=False)\n",
        "        self._settle(arrival.tags, _requeue, removes=False)\n",
    ),
    "basic.recover-1": _one(
        "                    self._answer_lease(lease, _requeue)\n",
        "                    self._answer_lease(lease, _accept)\n",
    ),
    "basic.recover-2": _one(
        '    if not method.requeue:\n        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "requeue=false")\n',
        "",
    ),
    "tx.commit-1": _one(
        '    if not numbers.deliveries.transactional:\n        raise _refused("channel is not transactional")\n    _commit(',
        "    _commit(",
    ),
    "tx.commit-2": _one("            self.check_committed(transaction)\n", "")
    + _one(
        "        if self._channel.transactional:\n            self._post(publish)",
        "        if False:\n            self._post(publish)",
    ),
    "tx.rollback-1": _one(
        '    if not numbers.deliveries.transactional:\n        raise _refused("channel is not transactional")\n    _rollback(',
        "    _rollback(",
    ),
    "tx.rollback-2": _one(
        '        self._roll_back()\n        self.reply(self.make("tx.rollback-ok"))\n',
        '        self.reply(self.make("tx.rollback-ok"))\n',
    )
    + _one("        self._out = dict.fromkeys(sorted((*self._out, *(self._settled or ()))))\n", ""),
    "3.1.3.1-1": _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'direct']:\n",
    )
    + _one("        for name, kind in _FIRST:\n", "        for name, kind in _FIRST[1:]:\n"),
    "3.1.3.2-1": _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'fanout']:\n",
    ),
    "3.1.3.3-2": _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'topic']:\n",
    ),
    "3.1.3.4-1": _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'headers']:\n",
    )
    + _one(
        '        self.any: bool = match.startswith("any")\n',
        '        self.any: bool = not match.startswith("any")\n',
    ),
    "3.1.5-1": _one(
        '                self._definitions.drop_queue(queue.name)\n            self._drop_bindings(self.bindings.of_destination(Destination("queue", queue.name)))\n',
        "                self._definitions.drop_queue(queue.name)\n",
    ),
    "4.2.4-1": _one(
        '            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"unknown method',
        '            raise ReplyError(ReplyCode091.FRAME_ERROR, f"unknown method',
    )
    + _one(
        "    if method.immediate:\n        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED",
        "    if False:\n        raise ReplyError(ReplyCode091.NOT_IMPLEMENTED",
    ),
    "4.10.2-1": _one(
        "        await trio.sleep(FAILURE_PENALTY + random.random() * _JITTER)\n        self._engine.refuse_login(",
        "        self._engine.refuse_login(",
    ),
    "channel.open-1": _one(
        "    def _on_open(self, _method: spec.ChannelOpen) -> None:\n        self._lifecycle.receive(Step.OPEN)\n",
        "    def _on_open(self, _method: spec.ChannelOpen) -> None:\n        pass\n",
    ),
    "exchange-1": _one(
        "        there = self._by_key.get(key)\n", "        there = next(iter(self._by_key.values()), None)\n"
    ),
    "exchange-3": _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'topic']:\n",
    )
    + _one(
        "        for name, kind in _FIRST:\n",
        "        for name, kind in [each for each in _FIRST if each[1] != 'headers']:\n",
    ),
    "exchange.bind-2": _one(
        "        self.bindings.check(binding)\n",
        "        if source == destination:\n            raise PreconditionError(source)\n        self.bindings.check(binding)\n",
    ),
    "exchange.bind-3": _one(
        "                queues[node] = None\n",
        "                queues[node] = None\n                queues[len(queues)] = node  # type: ignore[index]\n",
    ),
    "queue.bind-2": _one(
        "                queues[node] = None\n",
        "                queues[node] = None\n                queues[len(queues)] = node  # type: ignore[index]\n",
    ),
    "queue.declare-1": _one(
        'dict.fromkeys(Destination("queue", key) for key in keys)',
        'dict.fromkeys(Destination("queue", key) for key in ())',
    ),
    "basic.publish-2": _one(
        'dict.fromkeys(Destination("queue", key) for key in keys)',
        'dict.fromkeys(Destination("queue", key) for key in ())',
    ),
    "basic.publish-3": _one(
        "        if self.internal:\n            raise AccessRefusedError(",
        "        if False:\n            raise AccessRefusedError(",
    ),
    "queue.bind-10": _one(
        "        there = self._by_key.get(key)\n", "        there = next(iter(self._by_key.values()), None)\n"
    ),
    "queue.bind-6": _one(
        '        if self.queue is None:\n            raise NotFoundError("no previously declared queue")\n        return self.queue\n',
        '        return self.queue or ""\n',
    )
    + _one(
        '        channel.queue = name = getattr(queue, "name", method.queue)\n',
        '        name = getattr(queue, "name", method.queue)\n',
    ),
    "basic.deliver-4": _one(
        "published.exchange, published.routing_key, carried, redelivered=lease.redelivered\n",
        "published.exchange, published.routing_key, carried, redelivered=False\n",
    ),
    "basic.ack-3": _one(
        "                if channel.transactional:\n                    channel.transaction.add(\n                        LeaseAnswer(",
        "                if False:\n                    channel.transaction.add(\n                        LeaseAnswer(",
    ),
    "exchange.unbind-1": _UNBOUND,
    "queue.unbind-1": _UNBOUND,
}
