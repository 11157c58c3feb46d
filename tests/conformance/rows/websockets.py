"""D: AMQP over WebSockets ("AMQP WebSocket Binding")."""

from __future__ import annotations

from tests.conformance.requirement import MAY, RULE, Change, need

_UNSEEN = "nothing to show: the wording of this section was not at hand when this page was made"

REQUIREMENTS = [
    need(
        "D-2.1-1",
        RULE,
        "the client asks for the subprotocol ``amqp``, and the server confirms it",
        "dialling_needs_the_subprotocol",
        "dialling_asks_for_the_path_and_names_the_host",
        "row_01_request_for_anything_else_is_refused_in_http",
        mutants=(
            Change('_SUBPROTOCOL: Final = "amqp"', '_SUBPROTOCOL: Final = "mqtt"'),
            Change("if not {_SUBPROTOCOL, _DRAFT_SUBPROTOCOL} & {*request.subprotocols}:", "if False:"),
            Change(" or answer.subprotocol != _SUBPROTOCOL:", ":"),
        ),
    ),
    need(
        "D-2.1-2",
        RULE,
        "AMQP goes in binary messages",
        "large_writes_are_split",
        "text_is_refused",
        mutants=(
            Change(
                'self._fail(_NO_TEXT, "AMQP travels in binary messages, and this is text")',
                "parts.append(event.data.encode())",
            ),
            Change(
                "        from wsproto.events import BytesMessage\n\n        with self._one_sender():",
                "        from wsproto.events import TextMessage\n\n"
                "        BytesMessage = lambda data: TextMessage(data=data.decode())  # noqa: E731, N806\n"
                "        with self._one_sender():",
            ),
        ),
    ),
    need(
        "D-2.2-1",
        RULE,
        "the SASL layer, if there is one, is inside the WebSocket; TLS is below the WebSocket, as in amqpwss",
        "sasl_and_its_roles_are_inside_a_websocket_as_over_tcp",
        "messages_cross_a_websocket",
        mutants=(
            Change(
                "        if mechanisms:\n            sasl = self._options.wire.sasl_client(",
                "        if False:\n            sasl = self._options.wire.sasl_client(",
            ),
            Change('"amqpwss": ("tls", "websocket"),', '"amqpwss": ("websocket",),'),
        ),
    ),
    need(
        "D-2.3-1",
        RULE,
        "the protocol headers inside a WebSocket are those of the core",
        "octets_behind_the_answer_are_heard",
        "connection_ends_with_a_close_of_its_websocket",
    ),
    need(
        "D-2.4-1",
        MAY,
        "a frame is spread over several WebSocket messages, and a WebSocket message holds several frames",
        "messages_of_the_websocket_begin_and_end_anywhere",
        "large_writes_are_split",
    ),
    need(
        "D-3-1",
        RULE,
        "a redirect names the address of a WebSocket",
        gap="not offered: a redirect names a host and a port, and a client that follows it keeps its scheme and its path",
    ),
    need(
        "D-4-1",
        RULE,
        "the WebSocket is closed after the exchange of closes",
        "connection_ends_with_a_close_of_its_websocket",
        "close_of_the_peer_is_the_end_and_answered",
        mutants=(
            Change("self._owed = self._connection.send(CloseConnection(code=1000))", "pass"),
            Change(
                "        if self._connection.state is ConnectionState.REMOTE_CLOSING:\n            self._answer(event.response())",
                "        pass",
            ),
        ),
    ),
    need("D-5-1", RULE, "the section on security", gap=_UNSEEN),
    need("D-6-1", RULE, "the section on the registration of the subprotocol", gap=_UNSEEN),
    need("D-7-1", RULE, "the section on conformance", gap=_UNSEEN),
]
