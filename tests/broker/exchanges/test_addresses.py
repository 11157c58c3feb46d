"""Addresses of exchanges: their spelling, and what is read of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.broker.exchanges.addresses import (
    binding_address,
    exchange_address,
    exchange_named,
    parse_exchange,
    spell_exchange,
)

names = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("/%*#\udc80\udcff"), max_size=12)


@given(names, names)
def test_exchange_and_key_come_back_from_their_address(name: str, key: str) -> None:
    address = exchange_address(name, key)
    assert parse_exchange(address) == (name, key)
    assert exchange_named(address) is None
    assert spell_exchange(address) == address
    assert address.isascii()


@given(names)
def test_address_without_a_key_names_no_routing_key(name: str) -> None:
    assert parse_exchange(exchange_address(name)) is None
    assert exchange_named(exchange_address(name)) == name
    assert exchange_address(name).startswith("/exchanges/")


@given(names, names)
def test_spelling_is_the_same_however_often_it_is_made(name: str, key: str) -> None:
    spelt = spell_exchange(f"/exchanges/{name}/{key}")
    assert spell_exchange(spelt) == spelt


@pytest.mark.parametrize(
    ("address", "spelt"),
    [
        ("/exchanges/logs/eu", "/exchanges/logs/eu"),
        ("/exchanges/l%6Fgs/%65u", "/exchanges/logs/eu"),
        ("/exchanges/a%2fb/c d", "/exchanges/a%2Fb/c%20d"),
        ("/exchanges/100%/é", "/exchanges/100%25/%C3%A9"),
        ("/exchanges/logs/*.#", "/exchanges/logs/*.#"),
        ("/exchanges/logs/%2A", "/exchanges/logs/%2A"),
    ],
)
def test_address_has_one_spelling(address: str, spelt: str) -> None:
    assert spell_exchange(address) == spelt


@pytest.mark.parametrize(
    "address", ["q", "/queues/q/k", "/exchanges/e", "/exchanges/e/k/more", "exchanges/e/k"]
)
def test_other_address_is_of_no_exchange(address: str) -> None:
    assert parse_exchange(address) is None


def test_wildcards_of_a_binding_are_no_letters_of_a_key() -> None:
    assert binding_address("logs") == "/exchanges/logs/#"
    assert binding_address("", "*.a/b") == "/exchanges//*.a%2Fb"
    assert exchange_address("logs", "#") == "/exchanges/logs/%23"
    assert spell_exchange(binding_address("logs", "#")) != spell_exchange(exchange_address("logs", "#"))
