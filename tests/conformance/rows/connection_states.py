"""2.4.6: the states of a connection."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, Change, need

_NOTHING_IS_DISCARDED = Change(
    "        elif self.state is ConnectionState.OPENED or self.state is ConnectionState.OPEN_RCVD:\n",
    "        else:\n",
)
_FAULTS_ARE_TOLD_AGAIN = Change(
    "        if self.state in _CLOSING:\n            return None\n        self.close(error_of(fault))",
    "        self.close(error_of(fault))",
)

REQUIREMENTS = [
    need(
        "2.4.6-1",
        RULE,
        "the states of a connection, and what leads from one to another, are the standard's",
        "connection_comes_to_where_the_standard_says",
        "endpoint_is_closed_once_whoever_begins",
        "connection_goes_through_open_pipe_and_open_sent_when_it_is_first",
        "[connection-state]",
        mutants=(
            Change(
                "_C.OC_PIPE: {Step.RECV_HEADER: _C.CLOSE_PIPE}",
                "_C.OC_PIPE: {Step.RECV_HEADER: _C.CLOSE_SENT}",
            ),
            Change(
                "_C.CLOSE_SENT: {Step.RECV_CLOSE: _C.END}", "_C.CLOSE_SENT: {Step.RECV_CLOSE: _C.CLOSE_SENT}"
            ),
            Change("Step.RECV_HEADER: _C.OPEN_SENT,", "Step.RECV_HEADER: _C.OPENED,"),
            Change("_C.OPEN_SENT: {\n", "_C.OPEN_SENT: {\n        Step.RECV_CLOSE: _C.END,\n"),
        ),
    ),
    need(
        "2.4.6-2",
        MAY,
        "in CLOSE_RCVD the socket is closed for reading",
        gap="not offered: the close is answered at once, and then the socket is closed whole",
    ),
    need(
        "2.4.6-3",
        RULE,
        "in CLOSE_RCVD frames are sent, and none is expected",
        "connection_writes_what_it_owes_before_it_answers_a_close",
        "row_37_octets_behind_the_close_are_dropped",
        mutants=(
            Change(
                "        self.context.flush()\n        self.write_buffer.drop_held()",
                "        self.write_buffer.drop_held()",
            ),
            (
                Change("while not (self.deaf or connection.state is _END):", "while not self.deaf:"),
                Change(
                    "                if connection.state is _END:\n                    return False\n", ""
                ),
            ),
        ),
    ),
    need(
        "2.4.6-4",
        MAY,
        "in CLOSE_SENT the socket is closed for writing",
        gap="not offered: it is closed whole, when the peer has answered",
    ),
    need(
        "2.4.6-5",
        MUST,
        "in DISCARDING all frames are dropped silently until the peer's close",
        "connection_goes_through_discarding_when_it_closes_with_an_error",
        "connection_says_one_error_when_many_frames_are_at_fault",
        mutants=(_NOTHING_IS_DISCARDED, _FAULTS_ARE_TOLD_AGAIN),
    ),
    need(
        "2.4.6-6",
        RULE,
        "in END nothing is written",
        "row_65_closes_that_cross_are_not_answered_twice",
        "connection_tells_the_loss_of_its_transport_once",
        mutant=Change(
            'return None if self.state is ConnectionState.END or self.frame_reader.deaf else b""',
            'return b""',
        ),
    ),
]
