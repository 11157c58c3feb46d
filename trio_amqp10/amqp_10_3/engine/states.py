"""The state tables of connections and channels of 10.3.

States and steps are those of 0-9-1; in addition, a connection can be redirected (C 288, 412-423). A step of the peer that is not
in the table is answered with 503, or with 504 if the connection or channel is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.engine.states import ChannelState, ConnectionState, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

_C = ConnectionState
_N = ChannelState
_S = Step

CONNECTION: Final[Mapping[ConnectionState, Mapping[Step, ConnectionState]]] = {
    # C:protocol-header (C 284)
    _C.AWAIT_HEADER: {_S.HEADER: _C.AWAIT_START},
    # S:START C:START-OK (C 285)
    _C.AWAIT_START: {_S.START: _C.AWAIT_START_OK},
    _C.AWAIT_START_OK: {_S.START_OK: _C.AWAIT_TUNE},
    # *challenge, S:SECURE C:SECURE-OK (C 286, 291); S:TUNE C:TUNE-OK (C 287)
    _C.AWAIT_TUNE: {_S.SECURE: _C.AWAIT_SECURE_OK, _S.TUNE: _C.AWAIT_TUNE_OK, _S.RECV_CLOSE: _C.CLOSED},
    _C.AWAIT_SECURE_OK: {_S.SECURE_OK: _C.AWAIT_TUNE},
    _C.AWAIT_TUNE_OK: {_S.TUNE_OK: _C.AWAIT_OPEN, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    # C:OPEN S:OPEN-OK | S:REDIRECT (C 288)
    _C.AWAIT_OPEN: {_S.OPEN: _C.AWAIT_OPEN_OK, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.AWAIT_OPEN_OK: {
        _S.OPEN_OK: _C.OPEN,
        _S.REDIRECT: _C.CLOSED,
        _S.SEND_CLOSE: _C.CLOSE_SENT,
        _S.RECV_CLOSE: _C.CLOSED,
    },
    # close-connection (C 293-294): after our close everything but the answer to it is discarded (C 437)
    _C.OPEN: {_S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    # A close that crosses our close is answered, as in 0-9-1; otherwise both ends would wait for each other.
    _C.CLOSE_SENT: {_S.RECV_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE_OK: _C.CLOSED},
    _C.CLOSED: {},
}

CHANNEL: Final[Mapping[ChannelState, Mapping[Step, ChannelState]]] = {
    # open-channel (C 478); never called when the channel is already open (C 515)
    _N.CLOSED: {_S.OPEN: _N.OPENING},
    _N.OPENING: {_S.OPEN_OK: _N.OPEN, _S.SEND_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE: _N.CLOSED},
    # close-channel (C 483-484)
    _N.OPEN: {_S.SEND_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE: _N.CLOSED},
    # after our close everything but the answer to it, and a close that crosses it, is discarded (C 582)
    _N.CLOSE_SENT: {_S.RECV_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE_OK: _N.CLOSED},
}
