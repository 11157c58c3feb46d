"""Translation of sources and targets (Book IV, 5; Book III, 8.4).

In the draft, durability, expiry and time-out belong to a link; in the final standard each terminus has its own.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transactions as final_transactions
from trio_amqp10.amqp10.wire.values import Described, Symbol

from .outcomes import draft_outcome, final_outcome
from .spec import messaging as draft
from .spec import transactions as draft_transactions
from .spec.transport import LinkExpiryPolicy

_LIFETIME_POLICY: Final = Symbol("lifetime-policy")

_LIFETIMES: Final[dict[type[Any], type[Any]]] = {
    final.DeleteOnClose: draft.DeleteOnClose,
    final.DeleteOnNoLinks: draft.DeleteOnNoLinks,
    final.DeleteOnNoMessages: draft.DeleteOnNoMessages,
    final.DeleteOnNoLinksOrMessages: draft.DeleteOnNoLinksOrMessages,
}
_FINAL_LIFETIMES: Final[dict[type[Any], type[Any]]] = {there: here for here, there in _LIFETIMES.items()}

_EXPIRIES: Final = {
    final.ExpiryPolicy.LINK_DETACH: LinkExpiryPolicy.SESSION,
    final.ExpiryPolicy.SESSION_END: LinkExpiryPolicy.SESSION,
    final.ExpiryPolicy.CONNECTION_CLOSE: LinkExpiryPolicy.CONNECTION,
    final.ExpiryPolicy.NEVER: LinkExpiryPolicy.NEVER,
}
_FINAL_EXPIRIES: Final = {
    LinkExpiryPolicy.SESSION: final.ExpiryPolicy.SESSION_END,
    LinkExpiryPolicy.CONNECTION: final.ExpiryPolicy.CONNECTION_CLOSE,
    LinkExpiryPolicy.NEVER: final.ExpiryPolicy.NEVER,
}
_LONGEST: Final = (
    *(final.ExpiryPolicy.LINK_DETACH, final.ExpiryPolicy.SESSION_END),
    *(final.ExpiryPolicy.CONNECTION_CLOSE, final.ExpiryPolicy.NEVER),
)

_FILTER_NAMES: Final = {
    0x468C00000000: Symbol("apache.org:legacy-amqp-direct-binding:string"),
    0x468C00000001: Symbol("apache.org:legacy-amqp-topic-binding:string"),
    0x468C00000003: Symbol("apache.org:no-local-filter:list"),
    0x468C00000004: Symbol("apache.org:selector-filter:string"),
    0x120: Symbol("amqp:sql-filter"),
    0x173: Symbol("amqp:properties-filter"),
    0x174: Symbol("amqp:application-properties-filter"),
}
"""Names of the filters that have a numeric descriptor.

The draft names the type of a filter, and has no numbers for it (D 2035).
"""


class Lifetime(NamedTuple):
    """How long the terminus of a link is kept (7.3).

    An attach of the draft has one value for both termini.
    """

    durable: bool
    expiry_policy: Symbol
    timeout: int


def lifetime_of(*termini: Any) -> Lifetime:
    """Return the lifetime for an attach: the longest of its termini."""
    durable, expiry, timeout = False, final.ExpiryPolicy.LINK_DETACH, 0
    for terminus in termini:
        if isinstance(terminus, (final.Source, final.Target)):
            durable = durable or terminus.durable != final.TerminusDurability.NONE
            if terminus.expiry_policy in _LONGEST:
                expiry = max(expiry, Symbol(terminus.expiry_policy), key=_LONGEST.index)
            timeout = max(timeout, terminus.timeout)
    return Lifetime(durable, _EXPIRIES[expiry], timeout)


def draft_terminus(terminus: Any) -> Any:
    """Return a source, target or coordinator in the draft.

    None and an unknown terminus are returned unchanged.
    """
    match terminus:
        case final.Source():
            return draft.Source(
                address=terminus.address,
                dynamic=_draft_dynamic(terminus),
                # The sending peer must set a distribution-mode (D 1972). The default is ``move``.
                distribution_mode=terminus.distribution_mode or final.DistributionMode.MOVE,
                filter=_draft_filters(terminus.filter),
                default_outcome=draft_outcome(terminus.default_outcome),
                outcomes=tuple(_suffixed(name, ":list", ":map") for name in terminus.outcomes),
                capabilities=tuple(terminus.capabilities),
            )
        case final.Target():
            return draft.Target(
                address=terminus.address,
                dynamic=_draft_dynamic(terminus),
                capabilities=tuple(terminus.capabilities),
            )
        case final_transactions.Coordinator():
            return draft_transactions.Coordinator(capabilities=tuple(terminus.capabilities))
        case _:
            return terminus


def final_terminus(terminus: Any, lifetime: Lifetime) -> Any:
    """Return a source, target or coordinator in the final standard.

    It is kept for the lifetime of its link.
    """
    match terminus:
        case draft.Source():
            return final.Source(
                address=terminus.address,
                **_kept(lifetime),
                **_final_dynamic(terminus.dynamic),
                distribution_mode=terminus.distribution_mode,
                filter=_final_filters(terminus.filter),
                default_outcome=final_outcome(terminus.default_outcome),
                outcomes=tuple(_suffixed(name, ":map", ":list") for name in terminus.outcomes),
                capabilities=tuple(terminus.capabilities),
            )
        case draft.Target():
            return final.Target(
                address=terminus.address,
                **_kept(lifetime),
                **_final_dynamic(terminus.dynamic),
                capabilities=tuple(terminus.capabilities),
            )
        case draft_transactions.Coordinator():
            return final_transactions.Coordinator(capabilities=tuple(terminus.capabilities))
        case _:
            return terminus


def _kept(lifetime: Lifetime) -> dict[str, Any]:
    durable = final.TerminusDurability.UNSETTLED_STATE if lifetime.durable else final.TerminusDurability.NONE
    policy = _FINAL_EXPIRIES.get(lifetime.expiry_policy, lifetime.expiry_policy)
    return {"durable": durable, "expiry_policy": policy, "timeout": lifetime.timeout}


def _draft_dynamic(terminus: final.Source | final.Target) -> Any:
    """Return the lifetime policy, which requests a node and answers the request.

    See D 1958-1966.
    """
    if not terminus.dynamic:
        return None
    policy: Any = (terminus.dynamic_node_properties or {}).get(_LIFETIME_POLICY)
    return _LIFETIMES.get(policy.__class__, draft.DeleteOnClose)()


def _final_dynamic(policy: Any) -> dict[str, Any]:
    if policy is None:
        return {}
    kind = _FINAL_LIFETIMES.get(policy.__class__)
    properties = None if kind is None else {_LIFETIME_POLICY: kind()}
    return {"dynamic": True, "dynamic_node_properties": properties}


def _suffixed(name: str, before: str, after: str) -> Symbol:
    """Change the suffix of an outcome's symbol, which names its encoding (D 1988)."""
    return Symbol(name.removesuffix(before) + after if name.endswith(before) else name)


def _draft_filters(filters: Any) -> Any:
    if filters is None:
        return None
    made: dict[Any, Any] = {}
    for name, value in filters.items():
        if isinstance(value, Described):
            kind: Any = value.descriptor
            named = kind if isinstance(kind, Symbol) else _FILTER_NAMES.get(kind, Symbol(str(kind)))
            # Some filters have no argument, and the draft requires one (D 2037).
            made[name] = draft.Filter(filter_type=named, filter=[] if value.value is None else value.value)
        elif value is not None:
            made[name] = draft.Filter(filter_type=Symbol(name), filter=value)
    return made


def _final_filters(filters: Any) -> Any:
    if filters is None:
        return None
    return {
        name: Described(Symbol(value.filter_type), value.filter) if isinstance(value, draft.Filter) else value
        for name, value in filters.items()
    }
