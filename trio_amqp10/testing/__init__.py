"""For tests of programs that speak AMQP: real peers, scripted peers, and the network between them.

``open_container`` is a container within the test, in well under a millisecond; ``running_container`` one at a
port, for code that is not trio. A ``ScriptedPeer`` does what the test says, frame by frame. With pytest, the
fixtures ``amqp_container`` and ``amqp_url`` are there without asking.
"""

from __future__ import annotations

from trio_amqp10.container.memory import MemoryStream as MemoryStream
from trio_amqp10.container.memory import memory_stream_pair as memory_stream_pair
from trio_amqp10.spec.security import SaslChallenge as SaslChallenge
from trio_amqp10.spec.security import SaslCode as SaslCode
from trio_amqp10.spec.security import SaslInit as SaslInit
from trio_amqp10.spec.security import SaslMechanisms as SaslMechanisms
from trio_amqp10.spec.security import SaslOutcome as SaslOutcome
from trio_amqp10.spec.security import SaslResponse as SaslResponse
from trio_amqp10.spec.transport import Attach as Attach
from trio_amqp10.spec.transport import Begin as Begin
from trio_amqp10.spec.transport import Close as Close
from trio_amqp10.spec.transport import Detach as Detach
from trio_amqp10.spec.transport import Disposition as Disposition
from trio_amqp10.spec.transport import End as End
from trio_amqp10.spec.transport import Flow as Flow
from trio_amqp10.spec.transport import Open as Open
from trio_amqp10.spec.transport import Role as Role
from trio_amqp10.spec.transport import Transfer as Transfer
from trio_amqp10.trace.pieces import Piece as Piece

from .azure import event_hubs as event_hubs
from .azure import service_bus as service_bus
from .containers import open_container as open_container
from .containers import running_container as running_container
from .line import Cut as Cut
from .line import Line as Line
from .line import Stall as Stall
from .network import Network as Network
from .network import open_network as open_network
from .proxy import Proxy as Proxy
from .proxy import open_proxy as open_proxy
from .proxy import running_proxy as running_proxy
from .rabbitmq import rabbitmq as rabbitmq
from .recorder import Recorder as Recorder
from .recorder import chunkings as chunkings
from .recorder import read_recording as read_recording
from .recorder import replay as replay
from .scripted import ScriptedPeer as ScriptedPeer
from .scripts import open_peer as open_peer
from .scripts import running_peer as running_peer
from .scripts import scripted_stream as scripted_stream

__all__ = [
    "Attach",
    "Begin",
    "Close",
    "Cut",
    "Detach",
    "Disposition",
    "End",
    "Flow",
    "Line",
    "MemoryStream",
    "Network",
    "Open",
    "Piece",
    "Proxy",
    "Recorder",
    "Role",
    "SaslChallenge",
    "SaslCode",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "ScriptedPeer",
    "Stall",
    "Transfer",
    "chunkings",
    "event_hubs",
    "memory_stream_pair",
    "open_container",
    "open_network",
    "open_peer",
    "open_proxy",
    "rabbitmq",
    "read_recording",
    "replay",
    "running_container",
    "running_peer",
    "running_proxy",
    "scripted_stream",
    "service_bus",
]
