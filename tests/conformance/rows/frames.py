"""2.3: the frame."""

from __future__ import annotations

from tests.conformance.requirement import MUST, RULE, Change, need

__all__ = ["REQUIREMENTS"]

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
    ),
]
