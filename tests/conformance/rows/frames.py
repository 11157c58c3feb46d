"""2.3: the frame."""

from __future__ import annotations

from tests.conformance.requirement import MAY, MUST, RULE, Change, need

REQUIREMENTS = [
    need(
        "2.3.1-1",
        MUST,
        "the size of a frame counts its header, its extended header and its body",
        "encode_frame_writes_the_header_of_the_standard",
        "row_19_parse_frame_refuses_a_size_below_the_header",
        mutants=(
            Change(
                "_HEADER.pack(FRAME_HEADER_SIZE + len(body), 2, frame_type, channel)",
                "_HEADER.pack(len(body), 2, frame_type, channel)",
            ),
            Change(
                "    if size < FRAME_HEADER_SIZE:\n        raise FRAME_HEADER",
                "    if size < 4:\n        raise FRAME_HEADER",
            ),
        ),
    ),
    need(
        "2.3.1-2",
        RULE,
        "a frame of fewer than 8 octets is malformed",
        "row_19_parse_frame_refuses_a_size_below_the_header",
        "[frame-header]",
        mutant=Change(
            "    if size < FRAME_HEADER_SIZE:\n        raise FRAME_HEADER",
            "    if size < 4:\n        raise FRAME_HEADER",
        ),
    ),
    need(
        "2.3.1-3",
        RULE,
        "a frame with a data offset below 2 is malformed",
        "row_19_parse_frame_refuses_a_data_offset_out_of_range",
        mutant=Change("if doff < 2 or 4 * doff > size:", "if 4 * doff > size:"),
    ),
    need(
        "2.3.1-4",
        RULE,
        "a frame with a data offset beyond its size is malformed",
        "row_19_parse_frame_refuses_a_data_offset_out_of_range",
        mutant=Change("if doff < 2 or 4 * doff > size:", "if doff < 2:"),
    ),
    need(
        "2.3.1-5",
        MAY,
        "the type of the frame defines octets 6 and 7 of the header: in a SASL frame, they mean nothing",
        "layer_ignores_the_channel_and_the_extended_header",
    ),
    need(
        "2.3.1-6",
        RULE,
        "the type of an AMQP frame is 0 and that of a SASL frame is 1; a frame of another type is a fault",
        "encode_frame_writes_the_header_of_the_standard",
        "row_10_sasl_performative_in_the_amqp_layer_closes",
        "[frame-type]",
        mutants=(
            Change("SASL_FRAME: Final = 0x01", "SASL_FRAME: Final = 0x02"),
            Change("        if kind != AMQP_FRAME:", "        if kind > 1:"),
        ),
    ),
    need(
        "2.3.2-1",
        RULE,
        "octets 6 and 7 of an AMQP frame are its channel",
        "encode_frame_writes_the_header_of_the_standard",
        "write_body_lays_out_a_frame",
        "channels_of_the_two_directions_have_nothing_to_do_with_each_other",
        mutants=(
            Change('_HEADER: Final = Struct(">IBBH")', '_HEADER: Final = Struct("<IBBH")'),
            Change(
                'b"\\x02\\x00" + channel.to_bytes(2, "big")', 'b"\\x02\\x00" + channel.to_bytes(2, "little")'
            ),
        ),
    ),
    need(
        "2.3.2-2",
        RULE,
        "the extended header of an AMQP frame is ignored",
        "connection_skips_an_extended_header",
        "parse_frame_skips_the_extended_header",
        mutant=Change("pos + 4 * doff, pos + size", "pos + 8, pos + size"),
    ),
    need(
        "2.3.2-3",
        MUST,
        "a body begins with one of the nine performatives, as a described list",
        "row_30_unknown_performative_closes",
        "[performative]",
        mutant=Change(
            "            if self.state is not ConnectionState.DISCARDING:\n                self._undecodable",
            "            if self.state is not ConnectionState.DISCARDING and fault.rule != 'performative':\n"
            "                self._undecodable",
        ),
    ),
    need(
        "2.3.2-4",
        RULE,
        "the rest of a body is the payload of a transfer; other performatives have none",
        "send_writes_a_transfer_and_counts",
        "connection_closes_on_octets_behind_a_performative",
        "[payload]",
        mutants=(
            Change(
                "        chunks.append(head)\n        chunks.append(payload)\n",
                '        chunks.append(head)\n        chunks.append(b"")\n',
            ),
            Change("if pos != len(body) and not isinstance(performative, Transfer):", "if False:"),
        ),
    ),
    need(
        "2.3.2-5",
        MAY,
        "a frame without a body keeps a connection from being idle",
        "connection_keeps_alive_what_the_peer_would_give_up",
        "empty_frame_is_a_header_and_nothing_else",
    ),
]
