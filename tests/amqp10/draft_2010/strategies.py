"""Values of fields that both standards have, and their way over the wire."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from trio_amqp10.amqp10.draft_2010.registries import TYPES, read, write
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.wire.values import Described, Symbol

names = st.text("abc:-", min_size=1, max_size=6).map(Symbol)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
maps = st.dictionaries(names, texts | st.integers(-9, 9), max_size=3)
errors = st.builds(
    transport.Error,
    condition=names | st.just(Symbol("amqp:session:window-violation")),
    description=st.none() | texts,
    info=st.none() | maps,
)
outcomes = st.one_of(
    st.builds(final.Accepted),
    st.builds(final.Released),
    st.builds(final.Rejected, error=st.none() | errors),
    st.builds(
        final.Modified,
        delivery_failed=st.none() | st.booleans(),
        undeliverable_here=st.none() | st.booleans(),
        message_annotations=st.none() | maps,
    ),
)
tags = st.binary(min_size=1, max_size=8)
states = st.one_of(
    st.none(),
    outcomes,
    st.builds(TransactionalState, txn_id=tags, outcome=st.none() | outcomes),
    st.builds(final.Received, section_number=st.just(0), section_offset=st.integers(0, 2**64 - 1)),
)


def over_the_wire(value: Any, registry: Any = TYPES) -> Any:
    return read(write(value), registry, strict=True)


numbers = st.integers(0, 2**32 - 1)
expiries = st.sampled_from(
    [final.ExpiryPolicy.SESSION_END, final.ExpiryPolicy.CONNECTION_CLOSE, final.ExpiryPolicy.NEVER]
)
lifetimes = st.sampled_from(
    [
        final.DeleteOnClose(),
        final.DeleteOnNoLinks(),
        final.DeleteOnNoMessages(),
        final.DeleteOnNoLinksOrMessages(),
    ]
)
dynamics = st.one_of(
    st.just({}),
    lifetimes.map(
        lambda each: {"dynamic": True, "dynamic_node_properties": {Symbol("lifetime-policy"): each}}
    ),
)


@st.composite
def kept(draw: Any) -> dict[str, Any]:
    durable = draw(st.booleans())
    return {
        "durable": final.TerminusDurability(2 if durable else 0),
        "expiry_policy": draw(expiries),
        "timeout": draw(numbers),
    }


@st.composite
def sources(draw: Any, life: Any = None) -> final.Source:
    return final.Source(
        address=draw(st.none() | texts),
        **(draw(kept()) if life is None else life),
        **draw(dynamics),
        distribution_mode=draw(st.sampled_from([final.DistributionMode.MOVE, final.DistributionMode.COPY])),
        filter=draw(st.none() | st.dictionaries(names, st.builds(Described, names, texts), max_size=2)),
        default_outcome=draw(st.none() | outcomes),
        outcomes=tuple(
            draw(
                st.lists(
                    st.sampled_from(["amqp:accepted:list", "amqp:released:list", "x:y"]).map(Symbol),
                    max_size=3,
                )
            )
        ),
        capabilities=tuple(draw(st.lists(names, max_size=3))),
    )


@st.composite
def targets(draw: Any, life: Any = None) -> final.Target:
    return final.Target(
        address=draw(st.none() | texts),
        **(draw(kept()) if life is None else life),
        **draw(dynamics),
        capabilities=tuple(draw(st.lists(names, max_size=3))),
    )
