"""Tools for tests of AMQP programs: containers, scripted peers, networks.

``open_container`` opens a container inside the test, in well under a millisecond; ``running_container`` runs one at a
port, for code that does not use trio. A ``ScriptedPeer`` follows the script of a test, frame by frame. With pytest, the
fixtures ``amqp_container`` and ``amqp_url`` are available without an import.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.security import SaslChallenge as SaslChallenge
    from trio_amqp10.amqp10.spec.security import SaslCode as SaslCode
    from trio_amqp10.amqp10.spec.security import SaslInit as SaslInit
    from trio_amqp10.amqp10.spec.security import SaslMechanisms as SaslMechanisms
    from trio_amqp10.amqp10.spec.security import SaslOutcome as SaslOutcome
    from trio_amqp10.amqp10.spec.security import SaslResponse as SaslResponse
    from trio_amqp10.amqp10.spec.transport import Attach as Attach
    from trio_amqp10.amqp10.spec.transport import Begin as Begin
    from trio_amqp10.amqp10.spec.transport import Close as Close
    from trio_amqp10.amqp10.spec.transport import Detach as Detach
    from trio_amqp10.amqp10.spec.transport import Disposition as Disposition
    from trio_amqp10.amqp10.spec.transport import End as End
    from trio_amqp10.amqp10.spec.transport import Flow as Flow
    from trio_amqp10.amqp10.spec.transport import Open as Open
    from trio_amqp10.amqp10.spec.transport import Role as Role
    from trio_amqp10.amqp10.spec.transport import Transfer as Transfer
    from trio_amqp10.net.memory_streams import MemoryStream as MemoryStream
    from trio_amqp10.net.memory_streams import memory_stream_pair as memory_stream_pair
    from trio_amqp10.tools.trace.frame_splitter import Piece as Piece

    from .azure_emulator.threads import event_hubs as event_hubs
    from .azure_emulator.threads import service_bus as service_bus
    from .containers import open_container as open_container
    from .containers import running_container as running_container
    from .network import Network as Network
    from .network import open_network as open_network
    from .network_line import Cut as Cut
    from .network_line import Line as Line
    from .network_line import Stall as Stall
    from .proxy import Proxy as Proxy
    from .proxy import open_proxy as open_proxy
    from .proxy import running_proxy as running_proxy
    from .rabbitmq_emulator.threads import rabbitmq as rabbitmq
    from .record_replay import Recorder as Recorder
    from .record_replay import chunkings as chunkings
    from .record_replay import read_recording as read_recording
    from .record_replay import replay as replay
    from .scripted_peer import ScriptedPeer as ScriptedPeer
    from .scripted_peer_servers import open_peer as open_peer
    from .scripted_peer_servers import running_peer as running_peer
    from .scripted_peer_servers import scripted_stream as scripted_stream
else:
    from trio_amqp10.core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            "trio_amqp10.net.memory_streams": "MemoryStream memory_stream_pair",
            "trio_amqp10.amqp10.spec.security": "SaslChallenge SaslCode SaslInit SaslMechanisms SaslOutcome SaslResponse",
            "trio_amqp10.amqp10.spec.transport": "Attach Begin Close Detach Disposition End Flow Open Role Transfer",
            "trio_amqp10.tools.trace.frame_splitter": "Piece",
            ".azure_emulator.threads": "event_hubs service_bus",
            ".containers": "open_container running_container",
            ".network": "Network open_network",
            ".network_line": "Cut Line Stall",
            ".proxy": "Proxy open_proxy running_proxy",
            ".rabbitmq_emulator.threads": "rabbitmq",
            ".record_replay": "Recorder chunkings read_recording replay",
            ".scripted_peer": "ScriptedPeer",
            ".scripted_peer_servers": "open_peer running_peer scripted_stream",
        },
    )
