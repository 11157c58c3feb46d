"""Sources, targets and coordinators survive a translation, with the lifetime of their link."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from trio_amqp10.amqp10.draft_2010.spec import messaging as draft
from trio_amqp10.amqp10.draft_2010.termini import Lifetime, draft_terminus, final_terminus, lifetime_of
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec.transactions import Coordinator
from trio_amqp10.amqp10.wire.values import Described, Symbol, ULong

from .strategies import over_the_wire, sources, targets


@given(sources() | targets())
def test_terminus_comes_back_with_the_lifetime_of_its_link(terminus: Any) -> None:
    assert final_terminus(over_the_wire(draft_terminus(terminus)), lifetime_of(terminus)) == terminus


def test_coordinator_comes_back() -> None:
    coordinator = Coordinator(capabilities=("amqp:local-transactions",))
    back = final_terminus(over_the_wire(draft_terminus(coordinator)), lifetime_of(coordinator))
    assert back == coordinator


def test_link_is_kept_as_long_as_the_longest_of_its_termini() -> None:
    source = final.Source(durable=final.TerminusDurability.CONFIGURATION, timeout=5)
    target = final.Target(expiry_policy=final.ExpiryPolicy.NEVER, timeout=3)
    assert lifetime_of(source, target) == Lifetime(True, Symbol("never"), 5)
    assert lifetime_of(final.Source(expiry_policy=Symbol("x:mine"))) == Lifetime(False, Symbol("session"), 0)
    assert lifetime_of(None) == Lifetime(False, Symbol("session"), 0)
    unknown = final_terminus(draft.Target(), Lifetime(False, Symbol("x:mine"), 0))
    assert unknown.expiry_policy == "x:mine"


def test_dynamic_node_without_a_policy_lives_as_long_as_its_link() -> None:
    assert draft_terminus(final.Source(dynamic=True)).dynamic == draft.DeleteOnClose()
    asked = final_terminus(draft.Source(dynamic=Described("x:y", {})), Lifetime(False, Symbol("session"), 0))
    assert asked.dynamic
    assert asked.dynamic_node_properties is None


def test_mode_is_always_said_by_a_source() -> None:
    assert draft_terminus(final.Source()).distribution_mode == "move"


def test_filters_of_other_forms() -> None:
    filters = {
        Symbol("a"): Described(ULong(0x468C00000004), "x = 1"),
        Symbol("b"): Described(ULong(77), None),
        Symbol("c"): "bare",
        Symbol("d"): None,
    }
    made = draft_terminus(final.Source(filter=filters)).filter
    assert made == {
        Symbol("a"): draft.Filter(filter_type="apache.org:selector-filter:string", filter="x = 1"),
        Symbol("b"): draft.Filter(filter_type="77", filter=[]),
        Symbol("c"): draft.Filter(filter_type="c", filter="bare"),
    }
    back = final_terminus(
        draft.Source(filter={Symbol("a"): "as it is"}), Lifetime(False, Symbol("session"), 0)
    )
    assert back.filter == {Symbol("a"): "as it is"}
