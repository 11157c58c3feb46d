"""Items by owner, compared with a list that is searched."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.net.largest_owner import OwnerShares


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.integers(0, 5))))
def test_shares_know_who_has_most_and_what_is_oldest(steps: list[tuple[bool, str, int]]) -> None:
    shares = OwnerShares[int]()
    model: list[tuple[str, int]] = []
    for adds, owner, thing in steps:
        if not adds:
            shares.discard(owner, thing)
            model = [each for each in model if each != (owner, thing)]
        elif (owner, thing) not in model:
            shares.add(owner, thing)
            model.append((owner, thing))
        counts = Counter(owner for owner, _ in model)
        assert len(shares) == len(model)
        assert {each: shares.count(each) for each in "abc"} == {each: counts[each] for each in "abc"}
        greediest = shares.greediest()
        if greediest is None:
            assert not model
        else:
            assert counts[greediest] == max(counts.values())
            assert shares.oldest(greediest) == next(thing for owner, thing in model if owner == greediest)
