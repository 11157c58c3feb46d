"""A connection of a client of 10.3: adds tickets, files and clusters to 0-9-1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.engine.events import ChannelClosed, ChannelOpened, ClusterReceived, ContentAborted
from trio_amqp10.amqp091.server.connection import ServedConnection
from trio_amqp10.amqp_10_3.spec import ClusterBind

from .channel import ServerChannel103
from .cluster import ClusterBindings
from .tickets import Tickets

if TYPE_CHECKING:
    from .options import Options


class ServedConnection103(ServedConnection):
    """A connected client; see ``ServedConnection``.

    Attributes:
        options: the options of the server.
        tickets: the tickets of the client.
        cluster: the bindings that the client made with cluster.bind.
    """

    protocol = "AMQ Protocol 10.3"

    def __init__(self, *args: Any, habits: Options, **options: Any) -> None:
        super().__init__(*args, habits=habits, **options)
        self.options = habits
        self.tickets: Final = Tickets(habits.realms, needed=habits.tickets)
        self.cluster: Final = ClusterBindings(self, self._container.name)

    def make_channel(self, opened: ChannelOpened) -> ServerChannel103:
        """Return the channel for a client's open."""
        return ServerChannel103(self, opened.channel, opened.method.prefetch_max)

    def on_event(self, event: Any) -> None:
        """Process an event; adds aborted contents and the class cluster."""
        if isinstance(event, ContentAborted):
            channel = self.channels.get(event.channel)
            part = event.part if event.method.plan.name == "file.stage" else None
            if part is not None and isinstance(channel, ServerChannel103):
                channel.files.broken_off(part)
        elif isinstance(event, ClusterReceived):
            if isinstance(event.method, ClusterBind):
                self.cluster.bind(event.method)
            if self.options.on_cluster is not None:
                self.options.on_cluster(self, event.method)
        else:
            super().on_event(event)
            if isinstance(event, (ChannelOpened, ChannelClosed)):
                self.cluster.attach()
