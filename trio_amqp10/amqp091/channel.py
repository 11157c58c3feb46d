"""One channel: its life, the methods on it, and the contents that they carry (0-9-1, 2.2.5, 4.2.6, 4.5).

Methods come out of ``next_arrival`` in the order in which they came, each whole: a method with content is an arrival once
its body is complete. Answers are matched with requests by method, first in first out within one kind of request.

Knows the engine only as what queues frames and takes events. Longer than 400 lines: the two ways of sending and receiving,
the generic and the fast one, stand side by side.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from . import spec
from .assembly import Assembly
from .bookkeeping import RECEIVED, SENT, Numbers, check_properties
from .content import Content, write_header
from .events import Arrival, ChannelClosed, ChannelOpened
from .fast import publish_prefix, publish_rest, read_deliver, read_properties
from .faults import ReplyError
from .frames import HEADER, METHOD, body_frames, frame
from .methods import Sender
from .states import CHANNEL, ChannelState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from .events import Event
    from .fields import Letters
    from .limits import Limits
    from .methods import Method, MethodTable, Plan

__all__ = ["Channel", "Host"]

_PAUSED_BY_FLOW: Final = (spec.BasicPublish, spec.BasicDeliver)
_WHILE_OPENING: Final = frozenset({spec.ChannelOpenOk, spec.ChannelClose})
_OTHER: Final = {Sender.CLIENT: Sender.SERVER, Sender.SERVER: Sender.CLIENT}
_PREFIXES: Final = 256
"""Method frames of publishes that are kept: of the places to which was published last."""

_DELIVER: Final = spec.BasicDeliver.plan
_CLOSE: Final = spec.ChannelClose.plan
_CLOSE_OK: Final = spec.ChannelCloseOk.plan


class Host(Protocol):
    """What a channel needs of its engine."""

    role: Sender
    limits: Limits
    letters: Letters
    methods: MethodTable
    user: str | None
    partial: int
    held: int

    @property
    def largest_payload(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    def enqueue(self, octets: bytes) -> None: ...
    def emit(self, event: Event) -> None: ...
    def touch(self, channel: Channel) -> None: ...
    def forget(self, channel: Channel) -> None: ...


def _nothing() -> None:
    """What a channel does when it is touched, unless its owner says otherwise."""


class Channel:
    """One channel of a connection.

    Attributes:
        number: 1 to channel-max.
        numbers: delivery tags, confirms and consumers.
        flowing: whether the peer lets us publish or deliver (``channel.flow``).
        on_touch: called when there is an arrival, or the state or ``flowing`` changed.
    """

    __slots__ = (
        "_arrivals",
        "_content",
        "_held",
        "_host",
        "_is_server",
        "_life",
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
        self.number = number
        self.numbers = Numbers(host.user)
        self.flowing = True
        self.on_touch: Callable[[], None] = _nothing
        self._life = Lifecycle(CHANNEL, ChannelState.CLOSED, ChannelState.CLOSED)
        self._arrivals: deque[Arrival] = deque()
        self._held = 0
        self._requests: dict[type[Method], deque[Method]] = {}  # ours that are not answered
        self._owed: list[Method] = []  # the peer's that we have not answered
        self._content = Assembly(host)
        self._sent = SENT[host.role]  # looked up once: members of an enumeration are slow keys
        self._received = RECEIVED[host.role]
        self._peer = _OTHER[host.role]
        self._is_server = host.role is Sender.SERVER
        self._prefixes: dict[tuple[str, str, bool], bytes] = {}

    @property
    def state(self) -> ChannelState:
        """CLOSED, OPENING, OPEN or CLOSE_SENT."""
        return self._life.state

    def wake(self) -> None:
        """The pump calls this once for each read that touched the channel."""
        self.on_touch()

    def next_arrival(self) -> Arrival | None:
        """The oldest method that nobody took yet; None if there is none."""
        if not self._arrivals:
            return None
        arrival = self._arrivals.popleft()
        if self._held:
            self._held -= arrival.size
            self._host.held -= arrival.size
        return arrival

    # -- what we do -------------------------------------------------------------------------

    def open(self) -> None:
        """A client's channel.open; methods may follow at once.

        Raises:
            LocalProtocolError: it is open already, or was.
        """
        self._life.step(Step.OPEN)
        self._write(spec.ChannelOpen())

    def send(self, method: Method, content: Content | None = None) -> int:
        """Write a method, with its content if it carries one.

        Returns:
            The number of a publish in confirm mode, from 1; 0 for all else.

        Raises:
            LocalProtocolError: not this role's, not now, not an answer to anything, or not encodable; nothing was written.
        """
        plan, host = method.plan, self._host
        if plan.class_id in (10, 20) or not plan.sender.permits(host.role):
            raise LocalProtocolError(f"{plan.name} is not for a {host.role.value} to send on a channel")
        if self.state not in (ChannelState.OPENING, ChannelState.OPEN):
            raise LocalProtocolError(f"channel {self.number} is {self.state.name.lower()}")
        if plan.content != (content is not None):
            raise LocalProtocolError(f"{plan.name} carries {'a' if plan.content else 'no'} content")
        if not self.flowing and isinstance(method, _PAUSED_BY_FLOW):
            raise LocalProtocolError(f"the peer stopped the flow of channel {self.number}")
        request = self._owed_request(plan)
        frames = self._frames(method, content)
        rule = self._sent.get(type(method))
        noted = rule(self.numbers, method, request) if rule is not None else None
        if request is not None:
            self._owed.remove(request)
        self._await_answer(method)
        host.enqueue(frames)
        return noted[1] if noted is not None else 0

    def publish(self, exchange: str, routing_key: str, content: Content, *, mandatory: bool = False) -> int:
        """Send a basic.publish with its content: as ``send`` does it, at a fraction of the cost.

        Returns:
            The number of the publish in confirm mode, from 1; 0 otherwise.

        Raises:
            LocalProtocolError: as ``send``.
        """
        host = self._host
        if self.state is not ChannelState.OPEN or not self.flowing or host.role is not Sender.CLIENT:
            method = spec.BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
            return self.send(method, content)
        place = (exchange, routing_key, mandatory)
        prefix = self._prefixes.get(place)
        if prefix is None:
            if len(self._prefixes) >= _PREFIXES:
                self._prefixes.clear()
            prefix = publish_prefix(
                self.number, exchange, routing_key, mandatory, host.letters, host.largest_payload
            )
            self._prefixes[place] = prefix
        rest = publish_rest(self.number, content, host.letters, host.largest_payload)
        host.enqueue(b"".join((prefix, *rest)))
        numbers = self.numbers
        if not numbers.confirming:
            return 0
        number = numbers.publishes.last + 1
        numbers.publishes.number(number)
        return number

    def flow(self, active: bool) -> None:
        """Let the peer publish or deliver on this channel, or stop it (channel.flow).

        Raises:
            LocalProtocolError: the channel is not open.
        """
        if self.state is not ChannelState.OPEN:
            raise LocalProtocolError(f"channel {self.number} is {self.state.name.lower()}")
        method = spec.ChannelFlow(active=active)
        self._await_answer(method)
        self._write(method)

    def close(self, code: int = 200, text: str = "", class_id: int = 0, method_id: int = 0) -> None:
        """Write channel.close; what still comes on the channel is dropped.

        Raises:
            LocalProtocolError: the text is no short string, or a number does not fit.
        """
        if self._life.permits(Step.SEND_CLOSE):
            self._write(
                spec.ChannelClose(reply_code=code, reply_text=text, class_id=class_id, method_id=method_id)
            )
            self._life.step(Step.SEND_CLOSE)
            self._content.drop()

    def lose(self) -> None:
        """The connection is gone, and the channel with it."""
        self._life.step(Step.LOST)
        self._end()

    def _frames(self, method: Method, content: Content | None) -> bytes:
        host = self._host
        payloads = [(METHOD, method.plan.write(method, host.letters))]
        if content is not None:
            payloads.append((HEADER, write_header(content, host.letters)))
        for _, payload in payloads:
            if len(payload) > host.largest_payload:
                raise LocalProtocolError(f"{len(payload)} octets, where a frame takes {host.largest_payload}")
        frames = [frame(kind, self.number, payload) for kind, payload in payloads]
        if content is not None:
            frames += body_frames(self.number, content.body, host.largest_payload)
        return b"".join(frames)

    def _write(self, method: Method) -> None:
        self._host.enqueue(self._frames(method, None))

    def _await_answer(self, method: Method) -> None:
        if method.plan.waits(method):
            self._requests.setdefault(type(method), deque()).append(method)

    def _owed_request(self, plan: Plan) -> Method | None:
        """The oldest request of the peer's that a method answers."""
        if not plan.answers:
            return None
        for request in self._owed:
            if isinstance(request, plan.answers):
                return request
        raise LocalProtocolError(f"{plan.name} answers no request")

    # -- what the peer does -----------------------------------------------------------------

    def receive_open(self, payload: bytes) -> None:
        """A client's channel.open on a number that is free: answer it.

        Raises:
            ReplyError: its argument ends early or late.
        """
        _ = spec.ChannelOpen.plan.read(payload, self._host.letters)
        self._life.receive(Step.OPEN)
        self._life.step(Step.OPEN_OK)
        self._write(spec.ChannelOpenOk())
        self._host.emit(ChannelOpened(self))

    def receive(self, kind: int, payload: bytes) -> None:
        """A frame of this channel.

        Raises:
            ReplyError: the peer broke a rule that ends the connection.
        """
        if self.state is ChannelState.CLOSE_SENT:
            self._receive_closing(kind, payload)
            return
        try:
            self._receive(kind, payload)
        except ReplyError as fault:
            if not fault.class_id and self._content.method is not None:
                plan = self._content.method.plan
                fault.about(plan.class_id, plan.method_id)
            if fault.scope == "connection":
                raise
            self._refuse(fault)

    def receive_content(self, payload: bytes, octets: bytes, body: bytes) -> bool:
        """A method with a whole content, frame by frame the same as for ``receive``.

        Returns:
            Whether it was taken; otherwise give its frames to ``receive``, which says what is wrong with them.
        """
        host = self._host
        if self._life.state is not ChannelState.OPEN or self._content.expects != METHOD:
            return False
        size = len(octets) + len(body)
        if len(body) > host.limits.max_message_size or host.partial + size > host.limits.max_partial:
            return False
        try:
            plan = host.methods.plan_in(payload)
            if not plan.content or plan.answers or not plan.sender.permits(self._peer):
                return False
            made = read_deliver(payload) if plan is _DELIVER else plan.read(payload, host.letters)
            if made is None:
                return False
            properties = read_properties(octets, host.letters)
            if self._is_server:
                check_properties(self.numbers, properties)
            self._arrive(made, Content(properties, body, octets), size)
        except ReplyError:
            return False  # nothing has changed yet
        return True

    def _receive_closing(self, kind: int, payload: bytes) -> None:
        """After our close, all is dropped but the peer's close and its answer to ours (2.3.7)."""
        if kind != METHOD:
            return
        if payload[:4] == _CLOSE.prefix:
            self._life.receive(Step.RECV_CLOSE)
            self._write(spec.ChannelCloseOk())
            if (
                self._host.role is Sender.CLIENT
            ):  # what a server says of publishes before our close is an error of theirs
                close = _CLOSE.read(payload, self._host.letters)
                self._host.emit(ChannelClosed(self, cast("spec.ChannelClose", close), by_peer=True))
        elif payload[:4] == _CLOSE_OK.prefix:
            self._life.receive(Step.RECV_CLOSE_OK)
            self._end()
            self._host.forget(self)

    def _receive(self, kind: int, payload: bytes) -> None:
        content = self._content
        content.check(kind, self.number)
        if kind == METHOD:
            self._receive_method(payload)
        elif kind == HEADER:
            header = content.take_header(payload)
            if self._host.role is Sender.SERVER:
                check_properties(self.numbers, header.properties)
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
                ReplyCode091.COMMAND_INVALID, f"{plan.name} from a peer that is no {plan.sender.value}"
            ).about(plan.class_id, plan.method_id)
        self._content.method = method = plan.read(payload, host.letters)
        if self.state is ChannelState.OPENING and type(method) not in _WHILE_OPENING:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} before channel.open-ok")
        if plan.content:
            self._content.expects = HEADER
            return
        own = self._OWN.get(type(method))
        if own is not None:
            own(self, method)
        else:
            self._arrive(method, None, len(payload))

    def _arrive(self, method: Method, content: Content | None, size: int) -> None:
        plan, host = method.plan, self._host
        request = self._answered(plan) if plan.answers else None
        rule = self._received.get(type(method))
        noted = rule(self.numbers, method, request) if rule is not None else None
        if plan.waits(method):
            self._owed.append(method)
        tags, number = noted if noted is not None else ((), 0)
        self._held += size
        host.held += size
        self._arrivals.append(Arrival(method, content, request, tags, number, size))
        host.touch(self)

    def _answered(self, plan: Plan) -> Method:
        """The oldest request of ours that a method answers, which then waits no more."""
        for each in plan.answers:
            if requests := self._requests.get(each):
                return requests.popleft()
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} answers no request")

    def _refuse(self, fault: ReplyError) -> None:
        close = spec.ChannelClose(
            reply_code=fault.code,
            reply_text=fault.reply_text,
            class_id=fault.class_id,
            method_id=fault.method_id,
        )
        self.close(close.reply_code, close.reply_text, close.class_id, close.method_id)
        self._host.emit(ChannelClosed(self, close, by_peer=False))
        self._host.touch(self)

    def _end(self) -> None:
        """Closed for good: what nobody took can still be taken, but holds the reader back no more."""
        self._content.drop()
        self._host.held -= self._held
        self._held = 0
        self._host.touch(self)

    # -- the channel class ------------------------------------------------------------------

    def _on_open(self, _method: spec.ChannelOpen) -> None:
        self._life.receive(Step.OPEN)

    def _on_open_ok(self, _method: spec.ChannelOpenOk) -> None:
        self._life.receive(Step.OPEN_OK)
        self._host.emit(ChannelOpened(self))
        self._host.touch(self)

    def _on_flow(self, method: spec.ChannelFlow) -> None:
        if not method.active and self._host.role is Sender.SERVER and not self._host.limits.flow_control:
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, "active=false")
        self.flowing = method.active
        self._write(spec.ChannelFlowOk(active=method.active))
        self._host.touch(self)

    def _on_close(self, method: spec.ChannelClose) -> None:
        self._life.receive(Step.RECV_CLOSE)
        self._write(spec.ChannelCloseOk())
        self._end()
        self._host.forget(self)
        self._host.emit(ChannelClosed(self, method, by_peer=True))

    def _on_close_ok(self, _method: spec.ChannelCloseOk) -> None:
        self._life.receive(Step.RECV_CLOSE_OK)

    _OWN: ClassVar[dict[type[Method], Callable[[Channel, Any], None]]] = {
        spec.ChannelOpen: _on_open,
        spec.ChannelOpenOk: _on_open_ok,
        spec.ChannelFlow: _on_flow,
        spec.ChannelClose: _on_close,
        spec.ChannelCloseOk: _on_close_ok,
    }
    """Methods of the channel class; all others are arrivals, ``channel.flow-ok`` too."""
