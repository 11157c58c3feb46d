"""Nameko services against a broker: ``nameko_peer.py URL SCENARIO``; it fails where an assertion does.

Runs in an environment of its own, without this project.
"""

from __future__ import annotations

import sys
import uuid
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eventlet is old
    import eventlet

    eventlet.monkey_patch()

from nameko.containers import ServiceContainer
from nameko.events import BROADCAST, EventDispatcher, event_handler
from nameko.exceptions import RemoteError
from nameko.rpc import RpcProxy, rpc
from nameko.standalone.events import event_dispatcher
from nameko.standalone.rpc import ClusterRpcProxy

SECONDS = 20


def nameko_answers_and_dispatches_events(url: str) -> None:
    """Calls go to a queue of each service, replies to one of each caller, and events through exchanges."""
    tells, shouts = (f"{name}{uuid.uuid4().hex[:8]}" for name in ("teller", "shouter"))
    heard: eventlet.queue.Queue = eventlet.queue.Queue()

    class Shouter:
        name = shouts
        dispatch = EventDispatcher()

        @rpc
        def shout(self, text: str) -> str:
            self.dispatch("shouted", text)
            return text.upper()

        @rpc
        def fail(self) -> None:
            raise ValueError("always")

    class Teller:
        name = tells
        shouter = RpcProxy(shouts)

        @rpc
        def tell(self, text: str) -> str:
            return self.shouter.shout(text) + "!"

        @event_handler(shouts, "shouted")
        def hear(self, text: str) -> None:
            heard.put(text)

        @event_handler(shouts, "loud", handler_type=BROADCAST, reliable_delivery=False)
        def hear_all(self, text: str) -> None:
            heard.put(text)

    config = {"AMQP_URI": url}
    running = [ServiceContainer(service, config) for service in (Shouter, Teller)]
    for each in running:
        each.start()
    try:
        with eventlet.Timeout(SECONDS), ClusterRpcProxy(config, timeout=SECONDS) as cluster:
            assert cluster[tells].tell("tea") == "TEA!"
            calls = [cluster[shouts].shout.call_async(f"a{number}") for number in range(20)]
            assert [call.result() for call in calls] == [f"A{number}" for number in range(20)]
            try:
                cluster[shouts].fail()
            except RemoteError as error:
                assert (error.exc_type, error.value) == ("ValueError", "always")  # noqa: PT017
            else:
                raise AssertionError("the call did not fail")
            assert {heard.get() for _ in range(21)} == {"tea", *(f"a{number}" for number in range(20))}
            event_dispatcher(config)(shouts, "loud", "milk")
            assert heard.get() == "milk"
    finally:
        for each in running:
            each.stop()


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
