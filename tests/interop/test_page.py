"""The page of a container in a browser: what each view shows, what is done by clicking, and that no peer's text runs in it."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import trio

import trio_amqp10 as amqp
from tests.browser import open_page
from tests.http.page_server import page_server
from trio_amqp10.container import Container, Rules
from trio_amqp10.sasl import Server

from .conftest import need

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser import Page
    from tests.http.page_server import PageServer

HOSTILE = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
LONG = "orders/" + "x" * 9_993
VIEWS = {
    "overview": "Messages each second",
    "queues": "orders",
    "queue?address=orders": "Look at messages",
    "topology": "Where would it go?",
    "connections": "till-7",
    "connection?number=1": "Links and consumers",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need("chromium")
    with open_page(tmp_path_factory.mktemp("browser")) as found:
        yield found


def shop() -> Container:
    container = Container("shop", memory_limit=1024 * 1024)
    container.add_queue("dead")
    container.add_queue("orders", dead_letter="dead", max_length=100)
    container.add_queue("full", max_length=1)
    container.add_queue(HOSTILE)
    container.add_queue(LONG)
    container.add_topic("prices")
    broker = container.add_broker()
    for name in ("invoices", "parcels"):
        broker.declare_queue(name)
    return container


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with page_server(shop()) as found:
        container = found.container

        async def fill() -> None:
            await container.management.bind("amq.topic", "invoices", "order.*.paid")
            await container.management.bind("amq.topic", "parcels", "order.#")
            await container.send("full", b"x")
            for number in range(30):
                await container.send("orders", amqp.Message(b'{"n": %d}' % number, message_id=f"m{number}"))
            await container.send("dead", amqp.Message(HOSTILE, subject=HOSTILE))

        async def stay() -> None:
            async with container.connect(container_id="till-7") as conn, conn.open_receiver("prices"):
                await trio.sleep_forever()

        found.do(fill)
        found.do(found.keep, stay)
        yield found


def until(page: Page, script: str, *, seconds: float = 40) -> None:
    """Wait until an expression in the page is true."""
    deadline = time.monotonic() + seconds
    while not page.run(f"Boolean({script})"):
        assert time.monotonic() < deadline, (script, page.run("document.body.innerText")[:3000])
        time.sleep(0.05)


def go(page: Page, server: PageServer, view: str, **options: Any) -> None:
    """Load a view, and wait until it was read."""
    page.go("about:blank")
    page.said.clear()
    page.go(f"{server.url}#/{view}", **options)
    until(page, "document.getElementById('title').textContent !== 'Container'")


def button(page: Page, text: str, place: str = "document") -> None:
    page.click(
        f"Array.from({place}.querySelectorAll('button')).find((each) => each.textContent === {text!r} && !each.hidden)"
    )


def has(text: str, place: str = "document.body") -> str:
    return f"{place}?.innerText.includes({json.dumps(text)})"


DIALOG = "document.querySelector('dialog')"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_view_fits_and_shows_what_it_is_for(
    page: Page, server: PageServer, view: str, width: int, dark: bool
) -> None:
    go(page, server, view, width=width, dark=dark)
    until(page, has(VIEWS[view]))
    assert page.run("document.documentElement.scrollWidth") <= width
    nameless = "Array.from(document.querySelectorAll('button, a[href], input, select')).filter((each) => !each.innerText?.trim() && !each.closest('label') && !each.ariaLabel).length"
    assert page.run(nameless) == 0
    assert page.run("document.getElementById('state').hidden")
    assert page.said == []


def test_overview_is_live_and_names_what_is_blocked(page: Page, server: PageServer) -> None:
    go(page, server, "overview")
    until(page, has("Publishers of a queue wait, because it is full: full"))
    before = page.run("document.querySelector('.chart .s0').getAttribute('d')")
    until(page, f"document.querySelector('.chart .s0').getAttribute('d') !== {before!r}")
    for name, begins in (("10 min", "10 min ago"), ("1 h", "60 min ago")):
        button(page, name)
        until(page, has(begins))
    assert page.said == []


def test_purge_asks_first(page: Page, server: PageServer) -> None:
    management = server.container.management
    server.do(server.container.send, "dead", b"x")
    go(page, server, "queue?address=dead")
    until(page, has("ready"))
    ready = server.do(management.queue, "dead").ready
    assert ready >= 1
    button(page, "Purge")
    until(page, has("This cannot be undone", DIALOG))
    button(page, "Cancel", DIALOG)
    until(page, f"!{DIALOG}")
    assert server.do(management.queue, "dead").ready == ready
    button(page, "Purge")
    until(page, DIALOG)
    button(page, "Purge", DIALOG)
    until(page, has("Deleted: ", DIALOG))
    assert server.do(management.queue, "dead").ready == 0
    button(page, "Close", DIALOG)
    until(page, f"!{DIALOG}")
    assert page.said == []


def test_dead_letters_are_looked_at_and_redriven(page: Page, server: PageServer) -> None:
    management = server.container.management
    before = server.do(management.queue, "orders").ready

    async def reject() -> None:
        await management.get("orders", 2, outcome="reject")

    server.do(reject)
    go(page, server, "queue?address=dead")
    until(page, has("2 ready"))
    button(page, "Look at messages")
    until(page, "document.querySelectorAll('details').length === 2")
    page.run("document.querySelector('details').open = true")
    page.drawn()
    assert "rejected in orders" in page.run("document.querySelector('.deaths').innerText")
    assert '"n": 0' in page.run("document.querySelector('details pre').textContent")
    button(page, "hex")
    assert page.run("document.querySelector('details pre').textContent").startswith("000000  7b 22 6e 22")
    button(page, "Redrive")
    until(page, DIALOG)
    button(page, "Redrive", DIALOG)
    until(page, has("2 to orders; 0 are left.", DIALOG))
    assert server.do(management.queue, "orders").ready == before
    assert page.said == []


def test_dialog_is_used_with_the_keyboard(page: Page, server: PageServer) -> None:
    go(page, server, "queue?address=orders")
    until(page, has("30 ready"))
    button(page, "Publish")
    until(page, DIALOG)
    assert page.run("document.activeElement.name") == "body"
    page.call("Input.insertText", text="by hand")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Escape", windowsVirtualKeyCode=27)
    until(page, f"!{DIALOG}")
    assert page.run("document.activeElement.textContent") == "Publish"
    assert server.do(server.container.management.queue, "orders").ready == 30


@pytest.mark.parametrize("name", [HOSTILE, LONG], ids=["script", "long"])
@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_name_runs_no_script_and_breaks_no_view(
    page: Page, server: PageServer, name: str, width: int
) -> None:
    go(page, server, "queues", width=width)
    until(page, "document.querySelectorAll('tbody tr').length >= 7")
    assert page.run("document.documentElement.scrollWidth") <= width
    go(page, server, f"queue?address={quote(name, safe='')}", width=width)
    server.do(server.container.send, name, amqp.Message(HOSTILE, subject=HOSTILE, message_id=name[:200]))
    until(page, has("ready"))
    assert page.run("document.querySelector('h2').textContent") == name
    assert page.run("document.documentElement.scrollWidth") <= width
    button(page, "Look at messages")
    until(page, "document.querySelectorAll('details').length >= 1")
    page.run("document.querySelector('details').open = true")
    page.drawn()
    assert page.run("document.documentElement.scrollWidth") <= width
    assert "ran" not in page.run("document.title").split()
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 1
    assert page.said == []
    # Nor does what a mistake of ours would put there.
    page.run("try { document.body.insertAdjacentHTML('beforeend', '<img src=x>') } catch (fault) { }")
    page.run("(() => { const own = document.createElement('script'); try { own.textContent = 'document.title = 2'; document.body.append(own); } catch (fault) { } })()")  # fmt: skip
    page.drawn()
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.title") != "2"
    page.said.clear()


def test_route_of_a_key_is_tried_in_the_picture(page: Page, server: PageServer) -> None:
    go(page, server, "topology")
    until(page, "document.querySelectorAll('.picture g.queue').length === 2")
    page.run("document.querySelector('select[name=exchange]').value = 'amq.topic'")
    page.run("document.querySelector('input[name=key]').value = 'order.eu.paid'")
    button(page, "Where would it go?")
    until(page, has("It would go to 2 queues: "))
    assert page.run("document.querySelectorAll('.reached').length") == 2
    page.run("document.querySelector('input[name=key]').value = 'order.eu.sent'")
    button(page, "Where would it go?")
    until(page, has("It would go to 1 queue: parcels"))
    before = page.run("document.querySelector('.picture').getAttribute('viewBox')")
    button(page, "Larger")
    assert page.run("document.querySelector('.picture').getAttribute('viewBox')") != before
    assert page.said == []


def test_connection_is_closed_with_a_reason(page: Page, server: PageServer) -> None:
    ended: list[str] = []

    async def visit() -> None:
        try:
            async with (
                server.container.connect(container_id="visitor") as conn,
                conn.open_receiver("prices") as each,
            ):
                await each.receive()
        except amqp.AmqpError as fault:
            ended.append(str(fault))

    server.do(server.keep, visit)
    go(page, server, "connections")
    until(page, has("visitor"))
    page.click(
        "Array.from(document.querySelectorAll('tr')).find((each) => each.innerText.includes('visitor')).querySelector('a')"
    )
    until(page, has("to the peer"))
    button(page, "Close the connection")
    until(page, DIALOG)
    page.run(f"{DIALOG}.querySelector('input').value = 'shop closes'")
    button(page, "Close the connection", DIALOG)
    until(page, has("The connection is closed.", DIALOG))
    assert "shop closes" in ended[0]


def test_server_that_goes_away_and_comes_back_is_shown_and_resumed(page: Page) -> None:
    with page_server(shop()) as server:
        go(page, server, "overview")
        until(page, has("Nothing is blocked."))
        server.do(server.stop)
        until(page, has("The server does not answer. This page tries again"))
        assert page.run("document.querySelectorAll('.chart').length") == 3
        server.do(server.serve)
        until(page, "document.getElementById('state').hidden")
        server.do(server.container.send, "full", b"x")
        until(page, has("Publishers of a queue wait"))


def test_page_that_stays_open_does_not_grow(page: Page, server: PageServer) -> None:
    def counts() -> tuple[int, int]:
        page.call("HeapProfiler.collectGarbage")
        counters = page.call("Memory.getDOMCounters")
        heap = page.call("Runtime.getHeapUsage")
        return counters["nodes"], heap["usedSize"]

    def read_again(times: int) -> None:
        again = "document.dispatchEvent(new Event('visibilitychange'))"
        page.run(
            f"(async () => {{ for (let n = 0; n < {times}; n += 1) {{ {again}; await new Promise((done) => setTimeout(done, 60)); }} }})()"
        )

    for view in ("overview", "queue?address=orders", "topology"):
        go(page, server, view)
        read_again(130)  # more than any chart has points
        nodes, heap = counts()
        read_again(130)
        later, heap_later = counts()
        assert later <= nodes + 50, view
        assert heap_later <= heap + 300_000, view
    assert page.said == []


def test_ten_thousand_queues_are_sorted_filtered_and_divided_into_pages(page: Page) -> None:
    container = Container("many")
    for number in range(10_000):
        container.add_queue(f"q{number:05}")
    with page_server(container) as server:
        server.do(container.send, "q07777", b"x")
        go(page, server, "queues")
        until(page, has("10,000 queues, page 1 of 200"))
        assert page.run("document.querySelectorAll('tbody tr').length") == 50
        button(page, "Ready")
        until(page, "document.querySelector('tbody a').textContent === 'q07777'")
        assert page.run("document.querySelector('[aria-sort]').innerText") == "Ready"
        page.run(
            "(() => { const field = document.querySelector('input[type=search]'); field.value = 'q0123'; field.dispatchEvent(new Event('input')); })()"
        )
        until(page, has("10 of 10,000 queues, page 1 of 1"))
        assert page.said == []


def test_picture_gives_way_to_tables_beyond_200_nodes(page: Page) -> None:
    container = Container("many")
    for number in range(201):
        container.add_topic(f"t{number}")
    with page_server(container) as server:
        go(page, server, "topology")
        until(page, has("too many for a picture"))
        assert not page.run("document.querySelector('.picture').checkVisibility()")


def test_user_without_a_right_reads_a_sentence(page: Page) -> None:
    container = Container("box", authorise=Rules(("bob", "monitor", "q")))
    container.add_queue("q")
    container.add_queue("hidden")
    with page_server(container, Server(users={"bob": "pw"})) as server:
        page.call("Network.enable")
        token = base64.b64encode(b"bob:pw").decode()
        page.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {token}"})
        try:
            go(page, server, "overview")
            until(page, has("You have no permission for this"))
            go(page, server, "queues")
            until(page, has("1 queue, page 1 of 1"))
            go(page, server, "queue?address=q")
            until(page, has("0 ready"))
            button(page, "Purge")
            until(page, DIALOG)
            button(page, "Purge", DIALOG)
            until(page, has("You have no permission for this", DIALOG))
            assert page.run("document.getElementById('user').textContent") == "bob"
        finally:
            page.call("Network.setExtraHTTPHeaders", headers={})
            page.said.clear()


def visitor(server: PageServer, name: str) -> int:
    """Keep a connection that takes what the topic ``prices`` gets; its number."""
    container = server.container

    async def visit() -> None:
        with pytest.raises((amqp.AmqpError, ExceptionGroup)):
            async with (
                container.connect(container_id=name) as connection,
                connection.open_receiver("prices") as receiver,
            ):
                async for delivery in receiver:
                    delivery.accept()
            raise amqp.AmqpError("closed")

    async def come() -> int:
        await server.keep(visit)
        while True:
            for peer in container.connected:
                if peer.container_id == name and peer.link_count:
                    return peer.number
            await trio.sleep(0.01)

    found: int = server.do(come)
    return found


def test_frames_appear_from_a_click_on_and_are_text(page: Page, server: PageServer) -> None:
    container, number = server.container, visitor(server, "reader")
    rows, opened = "document.querySelectorAll('.frame').length", "document.querySelector('.frame[open]')"

    def news(body: str) -> None:
        server.do(container.send, "prices", amqp.Message(body, subject=HOSTILE))

    go(page, server, f"connection?number={number}")
    until(page, has("Links and consumers"))
    contents = "document.querySelector('section[aria-label=Frames] input')"
    page.click(contents)
    assert page.run(f"{contents}.checked")
    button(page, "Watch frames")
    until(page, has("newest last"))
    news(HOSTILE)
    until(page, has("Transfer("))
    assert page.run("document.querySelector('.frame .out').textContent") == "to peer"
    page.click(
        "Array.from(document.querySelectorAll('.frame summary')).find((each) => each.innerText.includes('Transfer('))"
    )
    until(page, has("content of a message", opened))
    assert "<scri" in page.run(f"{opened}.querySelector('pre').textContent")
    button(page, "Pause")
    until(page, has("It is paused"))
    before = page.run(rows)
    news("while paused")
    time.sleep(1.5)
    assert page.run(rows) == before
    button(page, "Go on")
    until(page, f"{rows} > {before}")
    button(page, "Clear")
    assert page.run(rows) == 0

    async def flood() -> None:
        for each in range(20_000):
            await container.send("prices", bytes(100) + str(each).encode())

    server.do(flood)
    until(page, has("left out: there w"))
    until(page, f"{rows} > 300")
    assert page.run("document.querySelector('.frames').children.length") <= 500
    button(page, "Stop")
    until(page, has("The watch has ended"))

    async def watches() -> int:
        return len(container.frame_watches)

    deadline = time.monotonic() + 10
    while server.do(watches):
        assert time.monotonic() < deadline
    assert page.run("document.title") != "ran"
    assert page.said == []


def test_frames_of_a_connection_end_with_its_close(page: Page, server: PageServer) -> None:
    go(page, server, f"connection?number={visitor(server, 'guest')}")
    button(page, "Watch frames")
    until(page, has("newest last"))
    button(page, "Close the connection")
    button(page, "Close the connection", DIALOG)
    until(page, has("Close(error=Error(condition=Symbol('amqp:connection:forced')"))
    until(page, has("The connection is closed."))
    button(page, "Close", DIALOG)
    until(page, has("0 frames") + " === false")
    assert [each for each in page.said if "404" not in each] == []
