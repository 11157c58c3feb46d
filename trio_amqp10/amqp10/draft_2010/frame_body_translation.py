"""Translation of frame bodies that need no other state (Book III, 7).

Flows, transfers and dispositions depend on the state of session and link: ``frame_translator`` and ``frame_writer``
make these. The flow-state and the peer's linkage in an attach also depend on it, and are arguments here.
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.amqp10.spec import security as final_security
from trio_amqp10.amqp10.spec import transport as final
from trio_amqp10.amqp10.spec.messaging import Received
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import LocalProtocolError

from .outcomes import draft_error, draft_state, final_error, final_state
from .protocol_rules import check_options, invalid_field
from .spec import security as draft_security
from .spec import transport as draft
from .spec.transport import LinkExpiryPolicy
from .termini import Lifetime, draft_terminus, final_terminus, lifetime_of

_ANY_SIZE: Final = 0xFFFF_FFFF
_MAX_HEARTBEAT: Final = 0xFFFF_FFFF // 2000
"""Seconds: the idle-time-out, two intervals in milliseconds, must be a uint."""


# Connections ---------------------------------------------------------------------------------------


def heartbeat_interval(idle_time_out: int | None) -> int | None:
    """Return seconds between heartbeats for a peer with this time-out in milliseconds.

    None means that any interval will do.
    """
    return None if idle_time_out is None else max(1, idle_time_out // 1000)


def idle_time_out(ours: int | None, theirs: int | None) -> int | None:
    """Return the time-out, in milliseconds, for two heartbeat intervals (D 1166-1170).

    The lower interval holds; 0 means no heartbeats, and None any interval. A peer counts as silent after two intervals.
    Return None without heartbeats.
    """
    if ours == 0 or theirs == 0:
        return None
    proposed = [each for each in (ours, theirs) if each is not None]
    return 2000 * min(*proposed, _MAX_HEARTBEAT) if proposed else None


def draft_open(performative: final.Open) -> draft.Open:
    """Return an open in the draft.

    In the final standard a peer announces half of its time-out: this is the heartbeat interval of the draft.
    """
    return draft.Open(
        container_id=performative.container_id,
        hostname=performative.hostname,
        max_frame_size=performative.max_frame_size,
        channel_max=performative.channel_max,
        heartbeat_interval=heartbeat_interval(performative.idle_time_out),
        outgoing_locales=tuple(performative.outgoing_locales),
        incoming_locales=tuple(performative.incoming_locales),
        offered_capabilities=tuple(performative.offered_capabilities),
        desired_capabilities=tuple(performative.desired_capabilities),
        properties=performative.properties,
    )


def final_open(body: draft.Open, ours: int | None) -> final.Open:
    """Return the peer's open in the final standard, with the time-out for both peers.

    Args:
        body: the open in the draft.
        ours: the interval in the open of this peer.

    Raises:
        RemoteProtocolError: an unknown option.
    """
    check_options(body, "connection")
    return final.Open(
        container_id=body.container_id,
        hostname=body.hostname,
        max_frame_size=_ANY_SIZE if body.max_frame_size is None else body.max_frame_size,
        channel_max=body.channel_max,
        idle_time_out=idle_time_out(ours, body.heartbeat_interval),
        outgoing_locales=_symbols(body.outgoing_locales),
        incoming_locales=_symbols(body.incoming_locales),
        offered_capabilities=tuple(body.offered_capabilities),
        desired_capabilities=tuple(body.desired_capabilities),
        properties=body.properties,
    )


def _symbols(locales: Any) -> tuple[Symbol, ...]:
    """Return locales or mechanisms, which are strings in the draft, as symbols.

    A string that is not ASCII is left out, because it is no symbol.
    """
    return tuple(Symbol(each) for each in locales if each.isascii())


def draft_close(performative: final.Close | final.End) -> draft.Close | draft.End:
    """Return the close of a connection, or the end of a session, in the draft."""
    kind = draft.Close if isinstance(performative, final.Close) else draft.End
    return kind(error=draft_error(performative.error))


def final_close(body: draft.Close) -> final.Close:
    """Return a close in the final standard; its options do not matter any more."""
    return final.Close(error=final_error(body.error))


# Sessions ------------------------------------------------------------------------------------------


def draft_begin(performative: final.Begin) -> draft.Begin:
    """Return a begin in the draft, which has no windows and no handle-max."""
    return draft.Begin(
        remote_channel=performative.remote_channel,
        offered_capabilities=tuple(performative.offered_capabilities),
        desired_capabilities=tuple(performative.desired_capabilities),
        properties=performative.properties,
    )


def final_begin(body: draft.Begin, outgoing_window: int) -> final.Begin:
    """Return a begin in the final standard, with an empty incoming window.

    No transfer may be sent before a flow-state of a receiving link permits it (D 1430).
    """
    return final.Begin(
        remote_channel=body.remote_channel,
        next_outgoing_id=0,
        incoming_window=0,
        outgoing_window=outgoing_window,
        offered_capabilities=tuple(body.offered_capabilities),
        desired_capabilities=tuple(body.desired_capabilities),
        properties=body.properties,
    )


def final_end(body: draft.End) -> final.End:
    """Return an end in the final standard; its options do not matter any more."""
    return final.End(error=final_error(body.error))


# Links ---------------------------------------------------------------------------------------------


def draft_linkage(performative: final.Attach) -> draft.Linkage | None:
    """Return the local linkage; None if this peer refuses the link.

    A refused link has no terminus (D 885, 1402-1408).
    """
    ours = performative.source if performative.role is final.Role.SENDER else performative.target
    if ours is None:
        return None
    return draft.Linkage(
        source=draft_terminus(performative.source), target=draft_terminus(performative.target)
    )


def draft_attach(
    performative: final.Attach, flow_state: draft.FlowState, remote: draft.Linkage | None
) -> draft.Attach:
    """Return an attach in the draft.

    The draft has no settle modes: the peer that settles a transfer first decides (D 1078-1108).

    Args:
        performative: the attach of the engine.
        flow_state: the flow-state of the link.
        remote: the peer's local linkage, as far as it is known.

    Raises:
        LocalProtocolError: the unsettled map does not fit a frame, and the draft has no incomplete map.
    """
    if performative.incomplete_unsettled:
        raise LocalProtocolError(
            "the unsettled map does not fit a frame, and the draft of 2010 has no incomplete maps: settle deliveries first"
        )
    lifetime = lifetime_of(performative.source, performative.target)
    unsettled = performative.unsettled
    return draft.Attach(
        name=performative.name,
        handle=performative.handle,
        flow_state=flow_state,
        role=performative.role,
        local=draft_linkage(performative),
        remote=remote,
        durable=lifetime.durable or None,
        expiry_policy=lifetime.expiry_policy,
        timeout=lifetime.timeout or None,
        unsettled=None if unsettled is None else {tag: draft_state(each) for tag, each in unsettled.items()},
        max_message_size=performative.max_message_size,
        properties=performative.properties,
    )


def final_attach(body: draft.Attach) -> final.Attach:
    """Return an attach in the final standard.

    Source and target are those of the peer's local linkage; without it, the link has no terminus (D 885).

    Raises:
        RemoteProtocolError: an unknown option, or an unsettled map that cannot be read.
    """
    check_options(body, "session")
    local = body.local or draft.Linkage()
    lifetime = Lifetime(
        bool(body.durable),
        LinkExpiryPolicy.SESSION if body.expiry_policy is None else Symbol(body.expiry_policy),
        body.timeout or 0,
    )
    unsettled = body.unsettled
    return final.Attach(
        name=body.name,
        handle=body.handle,
        role=body.role,
        snd_settle_mode=final.SenderSettleMode.MIXED,
        rcv_settle_mode=final.ReceiverSettleMode.FIRST,
        source=final_terminus(local.source, lifetime),
        target=final_terminus(local.target, lifetime),
        unsettled=None if unsettled is None else {tag: _resumable(each) for tag, each in unsettled.items()},
        initial_delivery_count=_initial_count(body),
        max_message_size=body.max_message_size,
        properties=body.properties,
    )


def _resumable(state: Any) -> Any:
    """Return the state of a delivery that may be resumed.

    ``bytes-transferred`` counts octets in the encoding of the draft, so the engine must send the message from the start.
    The translation to fragments then leaves out the octets that the peer has.
    """
    made = final_state(state)
    return Received(section_number=0, section_offset=0) if isinstance(made, Received) else made


def _initial_count(body: draft.Attach) -> int | None:
    if body.role is final.Role.RECEIVER:
        return None
    if body.flow_state.transfer_count is None:
        raise invalid_field("the attach of a sender has no transfer-count", "1442")
    return body.flow_state.transfer_count


def final_detach(body: draft.Detach) -> final.Detach:
    """Return a detach in the final standard.

    A detach without a local linkage closes the link (D 964).

    Raises:
        RemoteProtocolError: an unknown option.
    """
    check_options(body, "session")
    return final.Detach(handle=body.handle, closed=body.local is None, error=final_error(body.error))


# SASL ----------------------------------------------------------------------------------------------


def draft_sasl(performative: Any) -> Any:
    """Return a SASL frame in the draft, which has no hostname (Book VI, 3.4)."""
    match performative:
        case final_security.SaslMechanisms():
            names = tuple(str(name) for name in performative.sasl_server_mechanisms)
            return draft_security.SaslMechanisms(sasl_server_mechanisms=names)
        case final_security.SaslInit():
            return draft_security.SaslInit(
                mechanism=str(performative.mechanism), initial_response=performative.initial_response
            )
        case final_security.SaslChallenge():
            return draft_security.SaslChallenge(challenge=performative.challenge)
        case final_security.SaslResponse():
            return draft_security.SaslResponse(response=performative.response)
        case _:
            return draft_security.SaslOutcome(
                code=performative.code, additional_data=performative.additional_data
            )


def final_sasl(body: Any) -> Any:
    """Return a SASL frame in the final standard.

    Raises:
        RemoteProtocolError: an unknown option, an outcome without a code, or a mechanism whose name is not ASCII.
    """
    check_options(body, "connection")
    match body:
        case draft_security.SaslMechanisms():
            return final_security.SaslMechanisms(sasl_server_mechanisms=_symbols(body.sasl_server_mechanisms))
        case draft_security.SaslInit():
            if not body.mechanism.isascii():
                raise invalid_field(f"mechanism {body.mechanism!r}: expected ASCII", "2243", "connection")
            return final_security.SaslInit(
                mechanism=Symbol(body.mechanism), initial_response=body.initial_response
            )
        case draft_security.SaslChallenge():
            return final_security.SaslChallenge(challenge=body.challenge)
        case draft_security.SaslResponse():
            return final_security.SaslResponse(response=body.response)
        case _:
            if body.code is None:
                raise invalid_field("a sasl-outcome without a code", "2301", "connection")
            return final_security.SaslOutcome(code=body.code, additional_data=body.additional_data)
