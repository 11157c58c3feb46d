"""Locales: what each end says that it can write and wants to read, and what follows (2.7.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.amqp10.peer.remote_open import choose_locale

from .helpers import served

if TYPE_CHECKING:
    import trio_amqp10 as amqp


@pytest.mark.parametrize(
    ("wanted", "written", "chosen"),
    [
        ((), (), "en-US"),
        (("fr-CA",), (), "en-US"),
        (("fr-CA", "de"), ("de", "fr-CA"), "fr-CA"),
        (("FR-ca",), ("fr-CA",), "fr-CA"),
        (("nl", "en-us", "de"), ("de",), "en-US"),
    ],
)
def test_locale_is_the_first_that_the_reader_wants_and_the_writer_can(
    wanted: tuple[str, ...], written: tuple[str, ...], chosen: str
) -> None:
    assert choose_locale(wanted, written) == chosen


async def test_locales_are_told_and_chosen_at_both_ends() -> None:
    accepted: list[amqp.Connection] = []

    async def handle(connection: amqp.Connection) -> None:
        accepted.append(connection)
        await connection.wait_closed()

    async with served(
        handle,
        accept={"outgoing_locales": ("de-AT", "fr"), "incoming_locales": ("de-AT",)},
        outgoing_locales="nl",
        incoming_locales=["it", "fr", "de-AT"],
    ) as conn:
        await wait_all_tasks_blocked()
        [other] = accepted
        assert conn.remote.outgoing_locales == ("de-AT", "fr")
        assert conn.remote.incoming_locales == ("de-AT",)
        assert other.remote.incoming_locales == ("it", "fr", "de-AT")
        assert (conn.incoming_locale, conn.outgoing_locale) == ("fr", "en-US")
        assert (other.incoming_locale, other.outgoing_locale) == ("en-US", "fr")
