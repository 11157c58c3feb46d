"""The four ways to exchange the corpus with a peer: who dials, and who sends. Each checks both ends' counts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from .corpus import corpus_digest
from .ours import receive_from, send_to, serving, within

if TYPE_CHECKING:
    from .peers import Client

COUNT = 1000


def we_dial_and_send(peer: Client, presettled: bool, *, count: int = COUNT, seed: int = 1) -> None:
    with peer.listen() as listener:
        outcomes = within(partial(send_to, listener.url, "q", count, presettled, seed, **peer.dial))
    assert outcomes == ({} if presettled else {"accepted": count})
    assert listener.result["received"] == {"q": count}
    assert listener.result["digests"] == {"q": corpus_digest(seed, count)}
    assert listener.result["settled"] == {"q": count if presettled else 0}


def we_dial_and_receive(peer: Client, presettled: bool, *, count: int = COUNT, seed: int = 1) -> None:
    address = f"generate-{count}-{seed}"
    with peer.listen() as listener:
        got = within(partial(receive_from, listener.url, address, count, presettled, **peer.dial))
    settled = count if presettled else 0
    assert got == {"received": count, "settled": settled, "digest": corpus_digest(seed, count)}
    assert listener.result["sent"] == {address: count}
    assert listener.result["outcomes"] == ({} if presettled else {address: {"accepted": count}})


def we_listen_and_receive(peer: Client, presettled: bool, *, count: int = COUNT, seed: int = 1) -> None:
    async def run() -> None:
        async with serving(peer.scheme, **peer.serve) as node:
            sent = await trio.to_thread.run_sync(
                lambda: peer.run("send", node.url, "q", count, *flags(presettled), seed=seed)
            )
            assert sent["outcomes"] == ({} if presettled else {"accepted": count})
            settled = count if presettled else 0
            digest = corpus_digest(seed, count)
            await node.gone.wait()
            assert node.received == {"q": {"received": count, "settled": settled, "digest": digest}}

    within(run)


def we_listen_and_send(peer: Client, presettled: bool, *, count: int = COUNT, seed: int = 1) -> None:
    address = f"generate-{count}-{seed}"

    async def run() -> None:
        async with serving(peer.scheme, **peer.serve) as node:
            got = await trio.to_thread.run_sync(
                lambda: peer.run("receive", node.url, address, count, *flags(presettled))
            )
            settled = count if presettled else 0
            assert got == {"received": count, "settled": settled, "digest": corpus_digest(seed, count)}
            await node.gone.wait()
            assert node.outcomes == {address: {} if presettled else {"accepted": count}}

    within(run)


def flags(presettled: bool) -> list[str]:
    return ["--presettled"] if presettled else []
