"""Read a capture in any format: frame log, hex, raw octets, pcap or pcapng.

Detects the format; other modules read each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trio_amqp10.core.errors import LocalProtocolError

from .frame_log import Record, read_frame_log
from .pcap import is_pcap, read_packets
from .tcp_reassembly import conversations

_HEX = re.compile(rb"(0x)?[0-9a-fA-F]{2}([\s:]*(0x)?[0-9a-fA-F]{2})*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Capture:
    """The contents of a file.

    Attributes:
        records: the octets of its conversations.
        notes: lines for the user about the capture.
    """

    records: list[Record]
    notes: list[str]


def read_capture(data: bytes) -> Capture:
    """Detect the format of ``data``, and read it.

    Hex is pairs of digits, with spaces, line ends or colons between them; ``#`` begins a comment. Hex and raw
    octets are one direction of one conversation.

    Raises:
        LocalProtocolError: the data is empty or damaged, or a capture without AMQP.
    """
    if not data.strip():
        raise LocalProtocolError("the file is empty")
    if is_pcap(data):
        found = conversations(read_packets(data))
        if not found.records:
            raise LocalProtocolError(
                f"this capture has no AMQP: none of its {found.others} TCP conversations begins with a protocol header"
            )
        return Capture(found.records, found.notes)
    if data.lstrip()[:1] == b"{":
        return Capture(read_frame_log(data.decode(errors="replace").lstrip()), [])
    text = re.sub(rb"#[^\n]*", b"", data).strip()
    if _HEX.fullmatch(text):
        data = bytes.fromhex(re.sub(rb"0x|[\s:]", b"", text).decode())
    return Capture([Record(1, ">", data)], [])
