"""One channel: life cycle, methods and contents (0-9-1, 2.2.5, 4.2.6).

``next_arrival`` returns methods in the order of their arrival; a method with content arrives when its body is
complete. Answers are matched with requests by the kind of method, first in, first out (4.5). The channel uses
its engine only by the members of ``Host``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.content import Content, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import ANY_SIZE, HEADER, METHOD
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .assembly import Assembly
from .bookkeeping import ChannelNumbers
from .contents_shortcut import (
    ABSENT,
    arrival_of,
    deliver_parts,
    deliver_tag,
    publish_prefix,
    publish_rest,
    published_arrival,
    read_deliver,
    read_properties,
    read_publish,
    shared_properties,
)
from .events import Arrival, ChannelClosed, ChannelOpened, ContentAborted
from .states import ChannelState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.wire.fields import Letters
    from trio_amqp10.amqp091.wire.methods import Method, MethodTable, Plan
    from trio_amqp10.core.answer_deadlines import AwaitedAnswers
    from trio_amqp10.core.output_queue import OutputQueue

    from .contents_shortcut import DeliverNames
    from .events import Event
    from .limits import Limits
    from .profile import Profile

_CLASSES: Final = (10, 20)
"""The classes connection and channel, whose methods ``send`` refuses except one."""

_ALERT: Final = "channel.alert"
_WHILE_OPENING: Final = frozenset({"channel.open-ok", "channel.close"})
_OTHER: Final = {EndpointRole.CLIENT: EndpointRole.SERVER, EndpointRole.SERVER: EndpointRole.CLIENT}
_PREFIXES: Final = 256
"""Encoded method frames that are cached for recent publishes or deliveries."""

_OVERHEAD: Final = 512
"""Octets that each arrival counts in addition towards ``Limits.buffer``.

A Python object takes more memory than the method on the wire.
"""

_PUBLISH: Final = spec.BasicPublish.plan
_DELIVER: Final = spec.BasicDeliver.plan


class Host(Protocol):
    """The members of an engine that a channel uses.

    ``Engine`` implements them; a protocol avoids a circle of imports.
    """

    role: EndpointRole
    limits: Limits
    letters: Letters
    methods: MethodTable
    user: str | None
    partial: int
    held: int
    output: OutputQueue

    @property
    def answers(self) -> AwaitedAnswers: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def largest_payload(self) -> int: ...
    @property
    def largest_header(self) -> int: ...
    def enqueue(self, octets: bytes) -> None: ...
    def count_partial(self, octets: int) -> None: ...
    def emit(self, event: Event) -> None: ...
    def touch(self, channel: Channel) -> None: ...
    def forget(self, channel: Channel) -> None: ...


def _nothing() -> None:
    """The default of ``on_touch``."""


class Channel:
    """One channel of a connection.

    Attributes:
        number: 1 to channel-max.
        numbers: delivery tags, confirms and consumers.
        flowing: whether the peer permits us to publish or deliver (``channel.flow``).
        on_touch: called when a method arrived, or when the state or ``flowing`` changed.
    """

    __slots__ = (
        "_arrivals",
        "_content",
        "_delivers",
        "_fault",
        "_held",
        "_host",
        "_is_server",
        "_lifecycle",
        "_names",
        "_owed",
        "_peer",
        "_prefixes",
        "_received",
        "_requests",
        "_sent",
        "flowing",
        "number",
        "numbers",
        "on_touch",
    )

    def __init__(self, host: Host, number: int) -> None:
        self._host = host
        self.number: int = number
        self.numbers: ChannelNumbers = ChannelNumbers(host.user)
        self.flowing: bool = True
        self.on_touch: Callable[[], None] = _nothing
        self._lifecycle = Lifecycle(host.profile.channel, ChannelState.CLOSED, ChannelState.CLOSED)
        self._arrivals: deque[Arrival] | None = None  # None while empty, because an empty deque takes 0.7 KiB
        self._held = 0
        self._requests: dict[type[Method], list[Method]] = {}  # sent, not answered by the peer
        self._owed: list[Method] | None = None  # received, not answered here; None while there are none
        self._content = Assembly(host)
        self._sent = host.profile.sent[host.role]  # looked up once, because enum members are slow keys
        self._received = host.profile.received[host.role]
        self._peer = _OTHER[host.role]
        self._fault: ReplyError | None = None
        self._is_server = host.role is EndpointRole.SERVER
        # These caches are created on first use, to save memory.
        self._prefixes: dict[tuple[str, str, bool], bytes] | None = None
        self._delivers: dict[tuple[str, str, str], tuple[bytes, bytes]] | None = None
        self._names: DeliverNames | None = None

    @property
    def state(self) -> ChannelState:
        """CLOSED, OPENING, OPEN or CLOSE_SENT."""
        return self._lifecycle.state

    @property
    def part(self) -> tuple[Method, Content] | None:
        """The method and the received part of an incomplete content, or None."""
        method, content = self._content.method, self._content.part()
        return None if method is None or content is None else (method, content)

    def wake(self) -> None:
        """Call ``on_touch``; the pump does so once for each read that touched the channel."""
        self.on_touch()

    @property
    def has_arrivals(self) -> bool:
        """Whether ``next_arrival`` would return a method, or raise."""
        return self._arrivals is not None or self._fault is not None

    def next_arrival(self) -> Arrival | None:
        """Return the oldest method that was not taken yet; None if there is none.

        Raises:
            ReplyError: after these methods a client violated a rule that closes the channel: call ``close`` now.
        """
        arrivals = self._arrivals
        if arrivals is None:
            fault, self._fault = self._fault, None
            if fault is not None and self.state is ChannelState.OPEN:
                raise fault
            return None
        arrival = arrivals.popleft()
        if not arrivals:
            self._arrivals = None
        if self._held:
            size = arrival.size + _OVERHEAD
            self._held -= size
            self._host.held -= size
        return arrival

    # -- send -------------------------------------------------------------------------------

    def open(self, **arguments: Any) -> None:
        """Send a client's channel.open; other methods may follow at once.

        ``arguments`` are those of channel.open, in versions that have some.

        Raises:
            LocalProtocolError: the channel is or was already open.
        """
        self._lifecycle.step(Step.OPEN)
        self._write(self._make("channel.open", **arguments))
        self._host.answers.expect(self, f"channel.open on channel {self.number}")

    def _make(self, name: str, **arguments: Any) -> Any:
        return self._host.methods.make(name, **arguments)

    def send(self, method: Method, content: Content | None = None) -> int:
        """Send a method, with its content if it carries one.

        Returns:
            The number of a publish in confirm mode, from 1; otherwise 0.

        Raises:
            LocalProtocolError: the method is not for this role or state, answers no request, or cannot be
                encoded; nothing was written.
        """
        plan, host = method.plan, self._host
        own = plan.class_id in _CLASSES and plan.name != _ALERT
        if own or not plan.sender.permits(host.role):
            raise LocalProtocolError(f"a {host.role.value} cannot send {plan.name} on a channel")
        if self.state not in (ChannelState.OPENING, ChannelState.OPEN):
            raise LocalProtocolError(f"channel {self.number} is {self.state.name.lower()}")
        if plan.content != (content is not None):
            raise LocalProtocolError(f"{plan.name} must have {'a' if plan.content else 'no'} content")
        if not self.flowing and plan.name in host.profile.paused:
            raise LocalProtocolError(f"the peer stopped the flow of channel {self.number}")
        request = self._owed_request(plan)
        frames = self._frames(method, content)
        effect = self._sent.get(plan.name)
        noted = effect(self.numbers, method, request) if effect is not None else None
        if request is not None:
            assert self._owed is not None
            self._owed.remove(request)
            self._owed = self._owed or None
        self._await_answer(method)
        # Publishes and deliveries are only made while there is room; answers have a limit of their own.
        if plan.name in host.profile.paused or (plan.content and not self._is_server):
            host.output.add_paced(frames)
        else:
            host.enqueue(frames)
        return noted[1] if noted is not None else 0

    def publish(self, exchange: str, routing_key: str, content: Content, *, mandatory: bool = False) -> int:
        """Send a basic.publish with its content; like ``send``, but much faster.

        Returns:
            The number of the publish in confirm mode, from 1; otherwise 0.

        Raises:
            LocalProtocolError: as ``send``.
        """
        host = self._host
        usual = self.state is ChannelState.OPEN and self.flowing and host.profile.has_shortcuts
        if not usual or host.role is not EndpointRole.CLIENT:
            names = {"exchange": exchange, "routing_key": routing_key}
            return self.send(self._make("basic.publish", mandatory=mandatory, **names), content)
        if self._prefixes is None or len(self._prefixes) > _PREFIXES:
            self._prefixes = {}
        place = (exchange, routing_key, mandatory)
        try:
            prefix = self._prefixes.get(place)
        except TypeError:  # a list, for instance: the encoder refuses it by its name
            names = {"exchange": exchange, "routing_key": routing_key}
            return self.send(self._make("basic.publish", mandatory=mandatory, **names), content)
        if prefix is None:
            prefix = self._prefixes[place] = publish_prefix(
                self.number, exchange, routing_key, mandatory, host.letters, host.largest_payload
            )
        frames, largest = [prefix], host.largest_payload
        frames += publish_rest(self.number, content, host.letters, largest, largest)
        host.output.add_paced(b"".join(frames))
        numbers = self.numbers
        if not numbers.confirming:
            return 0
        number = numbers.publishes.last + 1
        numbers.publishes.add(number)
        return number

    def deliver(
        self,
        consumer_tag: str,
        exchange: str,
        routing_key: str,
        content: Content,
        *,
        redelivered: bool = False,
    ) -> int:
        """Send a basic.deliver with its content; like ``send``, but much faster.

        Returns:
            The delivery tag, which is the next of the channel.

        Raises:
            LocalProtocolError: as ``send``.
        """
        host, numbers = self._host, self.numbers
        tag = numbers.deliveries.last + 1
        no_ack = numbers.consumers.get(consumer_tag)
        usual = self._lifecycle.state is ChannelState.OPEN and self.flowing and host.profile.has_shortcuts
        if not usual or no_ack is None or not self._is_server:
            method = self._make(
                "basic.deliver",
                consumer_tag=consumer_tag,
                delivery_tag=tag,
                redelivered=redelivered,
                exchange=exchange,
                routing_key=routing_key,
            )
            self.send(method, content)  # raises the reason, unless only the version has no shortcut
            return tag
        if self._delivers is None or len(self._delivers) > _PREFIXES:
            self._delivers = {}
        place = (consumer_tag, exchange, routing_key)
        parts = self._delivers.get(place)
        if parts is None:
            parts = self._delivers[place] = deliver_parts(
                self.number, consumer_tag, exchange, routing_key, host.letters, host.largest_payload
            )
        begin, end = parts
        frames = [begin, deliver_tag(tag, redelivered), end]
        frames += publish_rest(self.number, content, host.letters, host.largest_payload, ANY_SIZE)
        numbers.deliveries.add(tag, no_ack)
        host.output.add_paced(b"".join(frames))
        return tag

    def flow(self, active: bool) -> None:
        """Permit or stop the peer's publishes or deliveries here (channel.flow).

        Raises:
            LocalProtocolError: the channel is not open.
        """
        if self.state is not ChannelState.OPEN:
            raise LocalProtocolError(f"channel {self.number} is {self.state.name.lower()}")
        method = self._make("channel.flow", active=active)
        self._await_answer(method)
        self._write(method)

    def close(self, code: int = 200, text: str = "", class_id: int = 0, method_id: int = 0) -> None:
        """Send channel.close; later frames of the channel are dropped.

        Raises:
            LocalProtocolError: the text is not a valid short string, or a number is out of range.
        """
        if self._lifecycle.permits(Step.SEND_CLOSE):
            close = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
            self._write(self._make("channel.close", **close))
            self._lifecycle.step(Step.SEND_CLOSE)
            self._expect_nothing()
            self._break_off()

    def lose(self) -> None:
        """End the channel, because its connection has ended."""
        self._lifecycle.step(Step.LOST)
        self._end()

    def _frames(self, method: Method, content: Content | None) -> bytes:
        host = self._host
        payloads = [(METHOD, method.plan.write(method, host.letters))]
        if content is not None:
            payloads.append((HEADER, write_header(content, host.letters, method.plan.class_id)))
        for kind, payload in payloads:
            largest = host.largest_payload if kind == METHOD else host.largest_header
            if len(payload) > largest:
                raise LocalProtocolError(
                    f"{len(payload)} octets exceed the largest frame payload of {largest}"
                )
        form = host.profile.frames
        frames = [form.frame(kind, self.number, payload) for kind, payload in payloads]
        if content is not None:
            frames += form.body_frames(self.number, content.body, host.largest_payload)
        return b"".join(frames)

    def _write(self, method: Method) -> None:
        self._host.enqueue(self._frames(method, None))

    def _await_answer(self, method: Method) -> None:
        if method.plan.waits(method):
            self._requests.setdefault(type(method), []).append(method)
            self._host.answers.expect(id(method), f"{method.plan.name} on channel {self.number}")

    def _expect_nothing(self) -> None:
        """Stop the timers of all requests, because the channel is closed."""
        answers = self._host.answers
        if answers:
            answers.answered(self)
            for requests in self._requests.values():
                for request in requests:
                    answers.answered(id(request))

    def _owed_request(self, plan: Plan) -> Method | None:
        """Return the oldest request of the peer that a method of ``plan`` answers."""
        if not plan.answers:
            return None
        for request in self._owed or ():
            if type(request) in plan.answers:
                return request
        raise LocalProtocolError(f"{plan.name} answers no request")

    # -- receive ----------------------------------------------------------------------------

    def receive_open(self, payload: bytes) -> None:
        """Receive a client's channel.open on a free number, and answer it.

        Raises:
            ReplyError: its argument is malformed.
        """
        opening = self._host.methods.read(payload, self._host.letters)
        self._lifecycle.receive(Step.OPEN)
        self._lifecycle.step(Step.OPEN_OK)
        self._write(self._make("channel.open-ok"))
        self._host.emit(ChannelOpened(self, opening))

    def receive(self, kind: int, payload: bytes) -> None:
        """Receive a frame of this channel.

        Raises:
            ReplyError: the peer violated a rule that ends the connection.
        """
        if self.state is ChannelState.CLOSE_SENT:
            self._receive_closing(kind, payload)
            return
        if self._fault is not None and not self._is_close(kind, payload):
            return
        try:
            self._receive(kind, payload)
        except ReplyError as fault:
            if not fault.class_id and self._content.method is not None:
                plan = self._content.method.plan
                fault.about(plan.class_id, plan.method_id)
            if fault.scope == "connection":
                raise
            if self._is_server and (self._arrivals is not None or self._owed):
                self._content.drop()
                self._fault = fault  # The methods before it get their answers first.
                self._host.touch(self)
            else:
                self._refuse(fault)

    def _is_close(self, kind: int, payload: bytes) -> bool:
        return kind == METHOD and payload[:4] == self._host.methods.by_name["channel.close"].prefix

    def receive_content(self, payload: bytes, octets: bytes, body: bytes) -> bool:
        """Receive a method with its whole content; as ``receive`` for each frame.

        Returns:
            Whether the content was taken. Otherwise nothing has changed: pass its frames to ``receive``, which
            reports errors.
        """
        host = self._host
        # Every case that is unusual, or an error, is left to ``receive``, which knows the reply codes.
        if self._lifecycle.state is not ChannelState.OPEN or self._content.expects != METHOD or self._fault:
            return False
        size = len(octets) + len(body)
        if len(body) > host.limits.max_message_size or host.partial + size > host.limits.max_partial:
            return False
        try:
            if self._is_server:
                return payload.startswith(_PUBLISH.prefix) and self._receive_publish(payload, octets, body)
            if payload.startswith(_DELIVER.prefix):
                return self._receive_deliver(payload, octets, body)
            plan = host.methods.plan_in(payload)
            if not plan.content or plan.answers or not plan.sender.permits(self._peer):
                return False
            made = plan.read(payload, host.letters)
            self._arrive(made, Content(read_properties(octets, host.letters), body, octets), size)
        except ReplyError:
            return False  # nothing has changed yet
        return True

    def _receive_publish(self, payload: bytes, octets: bytes, body: bytes) -> bool:
        """Receive a basic.publish with its content; see ``receive_content``."""
        host, numbers = self._host, self.numbers
        method = read_publish(payload)
        properties = shared_properties(octets, host.letters)
        if properties is not ABSENT:
            host.profile.check(numbers, properties)
        if method.immediate:
            return False
        number = 0
        if numbers.confirming:
            publishes = numbers.publishes
            number = publishes.last + 1
            publishes.add(number)
        self._note(published_arrival(method, properties, octets, body, number))
        return True

    def _note(self, arrival: Arrival) -> None:
        """Add an arrival for ``next_arrival``."""
        host, size = self._host, arrival.size + _OVERHEAD
        self._held += size
        host.held += size
        if self._arrivals is None:
            self._arrivals = deque()
        self._arrivals.append(arrival)
        host.touch(self)

    def _receive_deliver(self, payload: bytes, octets: bytes, body: bytes) -> bool:
        """Receive a basic.deliver with its content; see ``receive_content``."""
        host, numbers = self._host, self.numbers
        if self._names is None:
            self._names = {}
        method = read_deliver(payload, self._names)
        if method is None:
            return False
        arrival = arrival_of(method, octets, body, host.letters)
        settled = numbers.consumers.get(method.consumer_tag)
        if settled is None or not numbers.deliveries.add(method.delivery_tag, settled):
            return False
        self._note(arrival)
        return True

    def _receive_closing(self, kind: int, payload: bytes) -> None:
        """Receive a frame after our close: only close and close-ok count (2.3.7)."""
        if kind != METHOD:
            return
        plans = self._host.methods.by_name
        close = plans["channel.close"]
        if payload[:4] == close.prefix:
            self._lifecycle.receive(Step.RECV_CLOSE)
            self._write(self._make("channel.close-ok"))
            # A server's close may be about publishes before our close, so a client reports it.
            if self._host.role is EndpointRole.CLIENT:
                self._report_close(close.read(payload, self._host.letters))
        elif payload[:4] == plans["channel.close-ok"].prefix:
            self._lifecycle.receive(Step.RECV_CLOSE_OK)
            self._end()
            self._host.forget(self)

    def _receive(self, kind: int, payload: bytes) -> None:
        content = self._content
        content.check(kind, self.number)
        if kind == METHOD:
            self._receive_method(payload)
        elif kind == HEADER:
            header = content.take_header(payload)
            if self._host.role is EndpointRole.SERVER:
                self._host.profile.check(self.numbers, header.properties)
        elif content.is_aborted_by(payload):
            self._abort_content()
        else:
            content.take_body(payload)
        whole = content.whole()
        if whole is not None:
            assert content.method is not None
            assert whole.octets is not None
            self._arrive(content.method, whole, len(whole.body) + len(whole.octets))
        if content.expects == METHOD:
            content.method = None

    def _receive_method(self, payload: bytes) -> None:
        host = self._host
        plan = host.methods.plan_in(payload)
        if host.role is plan.sender:
            raise ReplyError(
                ReplyCode091.COMMAND_INVALID, f"only a {plan.sender.value} can send {plan.name}"
            ).about(plan.class_id, plan.method_id)
        self._content.method = method = plan.read(payload, host.letters)
        if self.state is ChannelState.OPENING and plan.name not in _WHILE_OPENING:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} before channel.open-ok")
        if plan.content:
            self._content.expects = HEADER
            return
        own = self._OWN.get(plan.name)
        if own is not None:
            own(self, method)
        else:
            self._arrive(method, None, len(payload))

    def _arrive(self, method: Method, content: Content | None, size: int) -> None:
        plan, host = method.plan, self._host
        request = self._answered(plan) if plan.answers else None
        effect = self._received.get(plan.name)
        noted = effect(self.numbers, method, request) if effect is not None else None
        answer = host.profile.answers.get(plan.name)
        if answer is not None:
            host.enqueue(self._frames(*answer(method, content)))
            return
        if plan.waits(method):
            if self._owed is None:
                self._owed = []
            self._owed.append(method)
        tags, number = noted if noted is not None else ((), 0)
        self._note(Arrival(method, content, request, tags, number, size))

    def _abort_content(self) -> None:
        """Drop a content that the peer aborts; its delivery tag needs no settlement."""
        method = self._content.method
        assert method is not None
        request = self._answered(method.plan) if method.plan.answers else None
        tag = getattr(method, "delivery_tag", None)
        if tag is not None:  # a delivery of 10.3: its tag is used up
            self.numbers.deliveries.add(tag, settled=True)
        self._break_off(request)

    def _break_off(self, request: Method | None = None) -> None:
        """Drop an incomplete content; report it if the version can resume contents."""
        content = self._content
        if content.expects != METHOD and content.method is not None and self._host.profile.aborts_content:
            self._host.emit(ContentAborted(self, content.method, content.part(), request))
        content.drop()

    def _answered(self, plan: Plan) -> Method:
        """Remove and return the oldest of our requests that a method answers."""
        for each in plan.answers:
            if requests := self._requests.get(each):
                request = requests.pop(0)
                self._host.answers.answered(id(request))
                return request
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} answers no request")

    def _refuse(self, fault: ReplyError) -> None:
        close = self._make(
            "channel.close",
            reply_code=fault.code,
            reply_text=fault.reply_text,
            class_id=fault.class_id,
            method_id=fault.method_id,
        )
        self.close(close.reply_code, close.reply_text, close.class_id, close.method_id)
        self._host.emit(ChannelClosed(self, close, by_peer=False))
        self._host.touch(self)

    def _end(self) -> None:
        """End the channel: arrivals can still be taken, but do not stop reading any more."""
        self._expect_nothing()
        self._break_off()
        self._host.held -= self._held
        self._held = 0
        self._host.touch(self)

    # -- the channel class ------------------------------------------------------------------

    def _on_open(self, _method: spec.ChannelOpen) -> None:
        self._lifecycle.receive(Step.OPEN)

    def _on_open_ok(self, _method: spec.ChannelOpenOk) -> None:
        self._lifecycle.receive(Step.OPEN_OK)
        self._host.answers.answered(self)
        self._host.emit(ChannelOpened(self))
        self._host.touch(self)

    def _on_flow(self, method: spec.ChannelFlow) -> None:
        if (
            not method.active
            and self._host.role is EndpointRole.SERVER
            and not self._host.limits.flow_control
        ):
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "active=false")
        self.flowing = method.active
        self._write(self._make("channel.flow-ok", active=method.active))
        self._host.touch(self)

    def _on_close(self, method: spec.ChannelClose) -> None:
        self._lifecycle.receive(Step.RECV_CLOSE)
        self._write(self._make("channel.close-ok"))
        self._end()
        self._host.forget(self)
        self._report_close(method)

    def _report_close(self, method: Any) -> None:
        code = self._host.profile.close_codes.get(method.reply_code, method.reply_code)
        self._host.emit(ChannelClosed(self, replace(method, reply_code=code), by_peer=True))

    def _on_close_ok(self, _method: spec.ChannelCloseOk) -> None:
        self._lifecycle.receive(Step.RECV_CLOSE_OK)

    _OWN: ClassVar[dict[str, Callable[[Channel, Any], None]]] = {
        "channel.open": _on_open,
        "channel.open-ok": _on_open_ok,
        "channel.flow": _on_flow,
        "channel.close": _on_close,
        "channel.close-ok": _on_close_ok,
    }
    """Handlers of the channel class. All other methods are arrivals."""
