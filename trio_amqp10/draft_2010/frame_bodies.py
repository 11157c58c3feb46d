"""Frame bodies of the draft, and what they are in the final standard, as far as one says all of it (Book III, 7).

Flows, transfers and dispositions depend on where session and link stand: ``DraftConnection`` makes these. So do the flow-state
and the peer's linkage in an attach, which are arguments here.
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec import security as final_security
from trio_amqp10.spec import transport as final
from trio_amqp10.spec.messaging import Received
from trio_amqp10.wire.values import Symbol

from .faults import check_options, invalid_field
from .outcomes import draft_error, draft_state, final_error, final_state
from .spec import security as draft_security
from .spec import transport as draft
from .spec.transport import LinkExpiryPolicy
from .termini import Lifetime, draft_terminus, final_terminus, lifetime_of

__all__ = [
    "draft_attach",
    "draft_begin",
    "draft_close",
    "draft_linkage",
    "draft_open",
    "draft_sasl",
    "final_attach",
    "final_begin",
    "final_close",
    "final_detach",
    "final_end",
    "final_open",
    "final_sasl",
    "heartbeat_interval",
    "idle_time_out",
]

_ANY_SIZE: Final = 0xFFFF_FFFF
_MAX_HEARTBEAT: Final = _ANY_SIZE // 2000


# Connections ---------------------------------------------------------------------------------------


def heartbeat_interval(idle_time_out: int | None) -> int | None:
    """Seconds between frames that keep a peer with this time-out, in milliseconds, content; None for any."""
    return None if idle_time_out is None else max(1, idle_time_out // 1000)


def idle_time_out(ours: int | None, theirs: int | None) -> int | None:
    """The time-out, in milliseconds, that goes with two intervals; None where there are no heartbeats (D 1166-1170).

    The lower of both holds; 0 says that there are none, and None that any will do. A peer counts as silent after two intervals.
    """
    if ours == 0 or theirs == 0:
        return None
    proposed = [each for each in (ours, theirs) if each is not None]
    return 2000 * min(*proposed, _MAX_HEARTBEAT) if proposed else None


def draft_open(performative: final.Open) -> draft.Open:
    """Our open: half of the time-out is what it announces, and that is the interval here."""
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
    """The peer's open, with the time-out that holds for both.

    Args:
        body: as it came.
        ours: the interval that our own open proposes.

    Raises:
        RemoteProtocolError: an option that is not known.
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
    """Locales are strings in the draft; one that is no name is none that we could speak."""
    return tuple(Symbol(each) for each in locales if each.isascii())


def draft_close(performative: final.Close | final.End) -> draft.Close | draft.End:
    """The end of a connection or of a session."""
    kind = draft.Close if isinstance(performative, final.Close) else draft.End
    return kind(error=draft_error(performative.error))


def final_close(body: draft.Close) -> final.Close:
    """The peer's close. What its options say does not matter any more."""
    return final.Close(error=final_error(body.error))


# Sessions ------------------------------------------------------------------------------------------


def draft_begin(performative: final.Begin) -> draft.Begin:
    """Our begin: windows and handle-max have no place in it."""
    return draft.Begin(
        remote_channel=performative.remote_channel,
        offered_capabilities=tuple(performative.offered_capabilities),
        desired_capabilities=tuple(performative.desired_capabilities),
        properties=performative.properties,
    )


def final_begin(body: draft.Begin, outgoing_window: int) -> final.Begin:
    """The peer's begin. There is no room for a transfer before a flow-state of a receiving link has said so (D 1430)."""
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
    """The peer's end. What its options say does not matter any more."""
    return final.End(error=final_error(body.error))


# Links ---------------------------------------------------------------------------------------------


def draft_linkage(performative: final.Attach) -> draft.Linkage | None:
    """Our local linkage; None where we have no terminus: a link that cannot be had (D 885, 1402-1408)."""
    ours = performative.source if performative.role is final.Role.SENDER else performative.target
    if ours is None:
        return None
    return draft.Linkage(
        source=draft_terminus(performative.source), target=draft_terminus(performative.target)
    )


def draft_attach(
    performative: final.Attach, flow_state: draft.FlowState, remote: draft.Linkage | None
) -> draft.Attach:
    """Our attach.

    Settle modes have no place in it: who settles first decides, transfer by transfer (D 1078-1108).

    Args:
        performative: what the engine writes.
        flow_state: where the link stands.
        remote: the peer's local linkage, as far as it was said.

    Raises:
        LocalProtocolError: not all of what is unsettled would fit a frame: the draft has no way to say so.
    """
    if performative.incomplete_unsettled:
        raise LocalProtocolError(
            "the unsettled map does not fit a frame, and the draft of 2010 has to have all of it"
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
    """The peer's attach: its local linkage is what it says of both ends; without one it has no terminus (D 885).

    Raises:
        RemoteProtocolError: an option that is not known; an unsettled map that is none.
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
        unsettled=None if unsettled is None else {tag: _known(each) for tag, each in unsettled.items()},
        initial_delivery_count=_initial_count(body),
        max_message_size=body.max_message_size,
        properties=body.properties,
    )


def _known(state: Any) -> Any:
    """The state of a delivery that may be resumed.

    How much of it the peer has counts octets of the draft, so that the engine is to say it from the start; what is not needed is
    left out where fragments are cut.
    """
    made = final_state(state)
    return Received(section_number=0, section_offset=0) if isinstance(made, Received) else made


def _initial_count(body: draft.Attach) -> int | None:
    if body.role is final.Role.RECEIVER:
        return None
    if body.flow_state.transfer_count is None:
        raise invalid_field("a sender attached without a transfer-count", "1442")
    return body.flow_state.transfer_count


def final_detach(body: draft.Detach) -> final.Detach:
    """The peer's detach: one without a local linkage closes the link (D 964).

    Raises:
        RemoteProtocolError: an option that is not known.
    """
    check_options(body, "session")
    return final.Detach(handle=body.handle, closed=body.local is None, error=final_error(body.error))


# SASL ----------------------------------------------------------------------------------------------


def draft_sasl(performative: Any) -> Any:
    """A frame of the SASL layer, as the draft has it; for the host there is no place in it (Book VI, 3.4)."""
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
    """A frame of the SASL layer, as the final standard has it.

    Raises:
        RemoteProtocolError: an option that is not known, an outcome without a code, or a mechanism that has no name.
    """
    check_options(body, "connection")
    match body:
        case draft_security.SaslMechanisms():
            return final_security.SaslMechanisms(sasl_server_mechanisms=_symbols(body.sasl_server_mechanisms))
        case draft_security.SaslInit():
            if not body.mechanism.isascii():
                raise invalid_field(f"{body.mechanism!r} is no mechanism", "2243", "connection")
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
