"""2.2: the protocol header, and how the two ends agree on one."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, SHOULD, Change, need

_NO_HEADER_WRITTEN = Change(
    "        self._chunks.append(octets)\n        self.size += len(octets)\n\n    def write_frame",
    "\n    def write_frame",
)
_OTHER_VERSION_WRITTEN = Change(
    "self.write_buffer.write_header(AMQP_HEADER)",
    'self.write_buffer.write_header(AMQP_HEADER[:5] + b"\\1\\1\\0")',
)
_STRANGER_GETS_NO_HEADER = Change(
    "if self.layer is Layer.CHOICE:\n                self._out = self._wanted_header()",
    "if self.layer is Layer.CHOICE:\n                pass",
)
_OTHER_VERSION_ANSWERED = Change(
    "return AMQP_HEADER if self._accept_plain else TLS_HEADER",
    'return AMQP_HEADER[:5] + b"\\0\\x09\\1" if self._accept_plain else TLS_HEADER',
)
_STREAM_STAYS_OPEN = Change(
    "        self._send_header()\n        self._end()\n", "        self._send_header()\n"
)

REQUIREMENTS = [
    need(
        "2.2-1",
        MUST,
        "a protocol header is written before any frame",
        "connection_goes_through_oc_pipe_and_close_pipe_when_it_closes_before_it_is_answered",
        "connection_goes_through_hdr_exch_and_open_rcvd_when_the_peer_is_first",
        mutant=_NO_HEADER_WRITTEN,
    ),
    need(
        "2.2-2",
        RULE,
        "the header is the letters AMQP, the protocol id 0, and the version 1 0 0",
        "header_carries_its_id_and_version_1_0_0",
        mutant=Change(
            r'AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"', r'AMQP_HEADER: Final = b"AMQP\x01\x01\x00\x00"'
        ),
    ),
    need(
        "2.2-3",
        MUST,
        "what follows a header is of the version that the header names: a header of another version is not written, "
        "and nothing is read behind one",
        "connection_goes_through_hdr_sent_when_it_is_not_pipelined",
        "row_1_header_id_refuses_at_the_first_octet_that_no_header_has",
        "[protocol-header]",
        mutants=(
            _OTHER_VERSION_WRITTEN,
            Change(
                '    raise PROTOCOL_HEADER.broken(\n        f"expected an AMQP',
                '    return None\n    raise PROTOCOL_HEADER.broken(\n        f"expected an AMQP',
            ),
        ),
    ),
    need(
        "2.2-4",
        MUST,
        "if the two headers differ, the outgoing stream is closed",
        "row_1_stranger_is_shown_our_header_when_there_is_no_sasl",
        "connection_refuses_the_header_of_another_layer",
        "row_3_downgrade_is_refused_before_any_credentials_leave",
        "row_3_answer_that_is_no_header_is_refused",
        mutants=(
            _STREAM_STAYS_OPEN,
            Change("            self._die(str(failure))", "            pass"),
        ),
    ),
    need(
        "2.2-5",
        SHOULD,
        "the incoming stream is then read to its end",
        "row_01_stranger_is_read_to_its_end_after_the_header_that_would_do",
        "row_01_stranger_that_never_ends_is_read_for_so_long_and_no_longer",
        mutant=Change("                await self._linger()", "                pass"),
        gap="for a second at most",
    ),
    need(
        "2.2-6",
        MUST,
        "the end that dialled sends its header at once",
        "connection_goes_through_hdr_sent_when_it_is_not_pipelined",
        "dialler_writes_no_octet_of_amqp_before_the_outcome_is_ok",
        mutants=(
            _NO_HEADER_WRITTEN,
            Change(
                "self.layer = Layer.SASL_HEADER\n            self._out = SASL_HEADER",
                "self.layer = Layer.SASL_HEADER",
            ),
        ),
    ),
    need(
        "2.2-7",
        MAY,
        "the end that was dialled waits for the other's header before it sends its own",
        "row_1_header_is_awaited_octet_by_octet_while_it_may_be_one",
        mutant=Change(
            "            self.layer: Layer = Layer.CHOICE\n",
            "            self.layer: Layer = Layer.CHOICE\n            self._out = AMQP_HEADER\n",
        ),
    ),
    need(
        "2.2-8",
        MUST,
        "the header of the end that dialled names the version that it prefers: there is one, 1.0.0",
        "connection_goes_through_hdr_sent_when_it_is_not_pipelined",
        mutant=_OTHER_VERSION_WRITTEN,
    ),
    need(
        "2.2-9",
        MUST,
        "a header with a version that is supported is answered with the same, and the protocol goes on",
        "connection_goes_through_hdr_exch_and_open_rcvd_when_the_peer_is_first",
        mutants=(
            _OTHER_VERSION_WRITTEN,
            Change(
                "        self.step(Step.RECV_HEADER)\n        self._send_header()\n",
                "        self.step(Step.RECV_HEADER)\n"
                "        self.allows(Step.SEND_HEADER) and self.step(Step.SEND_HEADER)\n",
            ),
        ),
    ),
    need(
        "2.2-10",
        MUST,
        "a header with another version is answered with one that is supported, and the stream is closed",
        "row_1_stranger_is_shown_an_acceptable_header",
        "row_1_stranger_is_shown_our_header_when_there_is_no_sasl",
        mutants=(
            _STRANGER_GETS_NO_HEADER,
            Change("        self._send_header()\n        self._end()\n", "        self._end()\n"),
        ),
    ),
    need(
        "2.2-11",
        SHOULD,
        "the version in that answer is the highest that is not above the version asked for",
        "row_1_stranger_is_shown_an_acceptable_header",
        mutant=_OTHER_VERSION_ANSWERED,
        gap="there is one version only",
    ),
    need(
        "2.2-12",
        SHOULD,
        "if there is none, it is the highest of all",
        "row_1_stranger_is_shown_an_acceptable_header",
        mutant=_OTHER_VERSION_ANSWERED,
        gap="there is one version only",
    ),
    need(
        "2.2-13",
        MUST,
        "octets that are no header are answered with a header that is supported, and the stream is closed",
        "row_01_wrong_first_octets_get_a_header_that_would_do",
        mutant=_STRANGER_GETS_NO_HEADER,
    ),
    need(
        "2.2-14",
        RULE,
        "an end with one version may send its header before it has read the other's, and close if that differs",
        "connection_refuses_the_header_of_another_layer",
        mutant=_STREAM_STAYS_OPEN,
    ),
    need(
        "2.2-15",
        MUST,
        "a protocol id that is not taken is answered with the header of one that is, and the stream is closed",
        "row_2_layer_that_is_not_taken_is_shown_the_header_of_one_that_is",
        "row_02_no_sasl_layer_where_there_are_users_gets_the_header_of_one",
        "[security-layer]",
        mutants=(
            Change("elif protocol_id == AMQP_ID and self._accept_plain:", "elif protocol_id == AMQP_ID:"),
            Change(
                "            self._out = self._wanted_header()\n            without =",
                "            without =",
            ),
        ),
    ),
    need(
        "2.2-16",
        MAY,
        "the answer names any protocol id that is taken",
        "row_2_stranger_is_pointed_at_tls_when_nothing_else_is_taken",
        mutant=Change("return AMQP_HEADER if self._accept_plain else TLS_HEADER", "return AMQP_HEADER"),
    ),
]
