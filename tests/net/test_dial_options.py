"""The options of dialling that every protocol has."""

from __future__ import annotations

import pytest

from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.dial_options import CommonDialOptions

SOON = Backoff(initial=0.5)


@pytest.mark.parametrize(("reconnect", "backoff"), [(False, None), (True, Backoff()), (SOON, SOON)])
def test_connection_is_dialled_again_where_it_is_asked_for(
    reconnect: bool | Backoff, backoff: Backoff | None
) -> None:
    assert CommonDialOptions(reconnect=reconnect).backoff == backoff


def test_no_password_is_sent_in_the_clear_and_no_connection_dialled_again_by_default() -> None:
    options = CommonDialOptions()
    assert options.allow_plaintext_password is False
    assert options.backoff is None
