"""The cart, whole: the example's page in a real browser, on a real gateway, with the demo shop behind it."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from servers.chromium import running_chromium, visitor
from servers.proxies import free_port
from shoal.demo.grocer import find_products
from shoal.gateway.http.files import OURS
from support.gateway_process import Served, serving

CART = Path(__file__).parents[2] / "examples" / "cart"

STATES = """
window.states = [];
new MutationObserver(() => {
  const state = document.getElementById("state");
  const text = state && state.checkVisibility() ? state.textContent : "";
  if (text && text !== window.states.at(-1)) window.states.push(text);
}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
"""Remembers everything that the page says of how its job stands."""


@pytest.fixture(scope="module")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("cart")
    with serving(
        folder, "cart.py", "--port", "0", "--with-workers", engine=engine(folder), at=CART, SHOAL_DEMO_URL=shop
    ) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_chromium() as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with visitor(browser) as somebody:
        somebody.add_init_script(STATES)
        yield somebody


@pytest.fixture
def page(context: BrowserContext, gateway: Served) -> Page:
    opened = context.new_page()
    opened.goto(gateway.url)
    return opened


def engine(folder: Path) -> str:
    return f"sqlite:///{folder}/shoal.db"


def fill(page: Page, items: list[str], zipcode: str) -> None:
    page.get_by_label("What you need").fill("\n".join(items))
    page.get_by_label("ZIP code").fill(zipcode)
    page.get_by_role("button", name="Find prices").click()


def shown(page: Page, items: list[str]) -> dict[str, list[tuple[str, ...]]]:
    """The products on the page, by item, when they are there."""
    expect(page.locator("article.item h2")).to_have_text(items)
    found = page.evaluate(
        """() => [...document.querySelectorAll("article.item")].map(article => [
             article.querySelector("h2").textContent,
             [...article.querySelectorAll(".product")].map(card => ["title", "price", "store", "distance"]
               .map(part => card.querySelector("." + part).textContent))])"""
    )
    return {item: [tuple(product) for product in products] for item, products in found}


def sold(items: list[str], zipcode: str) -> dict[str, list[tuple[str, ...]]]:
    """What the shop sells there."""
    return {
        item: [(card.title, card.price, card.store, card.distance) for card in find_products(item, zipcode)]
        for item in items
    }


def test_from_the_form_to_the_products_of_each_item_and_zip(page: Page) -> None:
    items = ["milk", "eggs", "bread", "tea & honey"]
    asked: list[Request] = []
    page.on("request", lambda request: asked.extend([request]))
    expect(page.get_by_text("Nothing in the cart yet")).to_be_visible()
    began = time.monotonic()
    fill(page, items, "10001")
    assert shown(page, items) == sold(items, "10001")
    states = page.evaluate("window.states")
    assert states[0].startswith("Submitting")
    assert re.fullmatch(r"In the queue: place [1-9]\d*", states[1])
    assert any(re.fullmatch(r"[1-3]/4 items completed", state) for state in states), states
    assert states[2:] == sorted(states[2:]), "progress never goes back"
    cheapest = page.locator("article.item").first.locator(".product", has=page.locator(".mark:visible"))
    prices = [float(price.removeprefix("£")) for _, price, *_ in sold(["milk"], "10001")["milk"]]
    assert cheapest.locator(".price").all_inner_texts() == [f"£{min(prices):.2f}"]
    [submission] = [request for request in asked if request.method == "POST"]
    assert submission.post_data_json == {"scraper": "cart", "input": {"items": items, "zipcode": "10001"}}
    questions = [request for request in asked if "/results/" in request.url]
    assert any("if-none-match" in request.headers for request in questions), "of a job that is worked on, changes"
    assert len(questions) <= 8 + time.monotonic() - began, "asked as the hints say: no more than once in a second"

    fill(page, ["milk", "tea"], "94105")
    assert shown(page, ["milk", "tea"]) == sold(["milk", "tea"], "94105")
    expect(page.locator("#work")).to_be_hidden()


def test_what_nobody_sells_and_what_cannot_be_read(page: Page) -> None:
    fill(page, ["unicorn", "teapot", "jam"], "10001")
    assert shown(page, ["unicorn", "teapot", "jam"])["jam"] == sold(["jam"], "10001")["jam"]
    expect(page.locator("article.item", has_text="unicorn")).to_contain_text("Nobody near you sells that.")
    expect(page.locator("article.item", has_text="teapot")).to_contain_text("could not be read (HTTP 418)")


def test_a_job_that_fails_says_so_and_another_can_follow(page: Page) -> None:
    fill(page, ["teapot"], "10001")
    expect(page.get_by_role("alert")).to_have_text(re.compile("It did not work: .*418"))
    fill(page, ["salt"], "10001")
    assert shown(page, ["salt"]) == sold(["salt"], "10001")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_what_is_wrong_with_the_form(page: Page) -> None:
    fill(page, [], "1234x")
    expect(page.get_by_text("Write at least one thing.")).to_be_visible()
    expect(page.get_by_text("A ZIP code has five digits.")).to_be_visible()
    expect(page.get_by_label("What you need")).to_be_focused()
    fill(page, [f"thing {number}" for number in range(21)], "10001")
    expect(page.get_by_role("alert")).to_contain_text("at most 20 items")
    expect(page.get_by_label("What you need")).to_have_attribute("aria-invalid", "true")


def test_names_are_text_and_never_markup(page: Page) -> None:
    item = "<img src=x onerror=alert(1)>"
    fill(page, [item], "10001")
    assert shown(page, [item]) == sold([item], "10001")


def test_a_queue_moves_up_and_a_gateway_that_dies_is_waited_for(
    context: BrowserContext, shop: str, tmp_path: Path
) -> None:
    port = str(free_port())
    with serving(tmp_path, "cart.py", "--port", port, engine=engine(tmp_path), at=CART, SHOAL_DEMO_URL=shop) as idle:
        ahead = [idle.submit("/cart", {"items": ["x"], "zipcode": "10001"}) for _ in range(30)]
        page = context.new_page()
        page.goto(idle.url)
        with (
            page.expect_response(re.compile(r"/results/.*wait=0$")) as first,
            page.expect_request(re.compile(r"/results/.*wait=[1-9]")) as following,
        ):
            fill(page, ["milk"], "10001")
        hint = first.value.json()["poll_after"]
        assert hint > 2, "thirty are ahead"
        assert following.value.url.endswith(f"wait={hint:g}")
        expect(page.get_by_text("In the queue: place 31")).to_be_visible()

        for job_id in ahead:
            idle.ask(f"/jobs/{job_id}", method="DELETE")
        page.reload()
        expect(page.get_by_text("In the queue: place 1")).to_be_visible()

        idle.process.send_signal(signal.SIGKILL)
        idle.process.wait()
        expect(page.get_by_text("The gateway does not answer. Trying again in")).to_be_visible()
        expect(page.get_by_text("In the queue: place 1")).to_be_visible()
    with serving(
        tmp_path, "cart.py", "--port", port, "--with-workers", engine=engine(tmp_path), at=CART, SHOAL_DEMO_URL=shop
    ):
        assert shown(page, ["milk"]) == sold(["milk"], "10001")
        expect(page.get_by_text("Trying again in")).to_be_hidden()


def test_a_submission_that_nobody_hears_is_made_again(page: Page) -> None:
    page.context.set_offline(True)
    fill(page, ["rice"], "10001")
    expect(page.get_by_text("The gateway does not answer. Trying again in")).to_be_visible()
    page.context.set_offline(False)
    assert shown(page, ["rice"]) == sold(["rice"], "10001")


def test_whoever_has_seen_enough_stops_it(page: Page, gateway: Served) -> None:
    fill(page, [f"thing {number}" for number in range(20)], "10001")
    page.wait_for_url(re.compile("#cart-"))
    job_id = page.url.partition("#")[2]
    with page.expect_response(re.compile(f"/jobs/{job_id}$")):
        page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Nothing in the cart yet")).to_be_visible()
    assert "#" not in page.url
    assert gateway.ask(f"/results/{job_id}").body["status"] == "cancelled"


class TestTheModule:
    """`/static/shoal.js` as any other page would use it."""

    def test_it_is_typed_and_asked_for_once(self, page: Page, gateway: Served) -> None:
        declared = re.findall(r"^export (?:class|function) (\w+)", (OURS / "shoal.d.ts").read_text(), re.MULTILINE)
        assert sorted(declared) == page.evaluate("async () => Object.keys(await import('/static/shoal.js')).sort()")
        answer = gateway.ask("/static/shoal.js")
        assert answer.headers["content-type"].startswith("text/javascript")
        assert gateway.ask("/static/shoal.js", If_None_Match=answer.headers["etag"]).status == 304

    def test_browsers_show_that_nothing_has_changed(self, page: Page, gateway: Served) -> None:
        """What the module relies on when it waits for a change: 304 is not replaced by something from a cache."""
        job_id = gateway.submit("/cart", {"items": ["milk"], "zipcode": "10001"})
        gateway.finished(job_id)
        statuses = page.evaluate(
            """async path => {
                 const first = await fetch(path, {cache: "no-store"});
                 const headers = {"If-None-Match": first.headers.get("ETag")};
                 return [first.status, (await fetch(path, {cache: "no-store", headers})).status];
               }""",
            f"/results/{job_id}",
        )
        assert statuses == [200, 304]

    def test_problems_and_items(self, page: Page) -> None:
        told = page.evaluate(
            """async () => {
                 const { Shoal, Problem } = await import("/static/shoal.js");
                 const gateway = new Shoal();
                 const problem = await gateway.submit("cart", {items: 5}).catch(error => error);
                 const lost = await gateway.result("cart-0").catch(error => error);
                 const key = "one and the same key";
                 const cart = {items: ["milk"], zipcode: "10001"};
                 const job = await gateway.submit("cart", cart, {idempotencyKey: key});
                 const again = await gateway.submit("cart", cart, {idempotencyKey: key});
                 const done = await gateway.wait(job.job_id);
                 const items = [];
                 for await (const record of gateway.items(job.job_id)) items.push(record.item);
                 return [problem instanceof Problem, problem.status, problem.kind, problem.message,
                         lost.status, job.job_id === again.job_id,
                         JSON.stringify(items) === JSON.stringify(done.results.milk), items.length];
               }"""
        )
        assert told[:3] == [True, 422, "bad-input"]
        assert "'items'" in told[3]
        assert told[4:] == [404, True, True, len(find_products("milk", "10001"))]

    def test_a_submission_that_is_tried_again_is_the_same_one(self, page: Page) -> None:
        keys: list[str] = []
        page.on("request", lambda asked: keys.extend(filter(None, [asked.headers.get("idempotency-key")])))
        page.evaluate("async () => { window.shoal = await import('/static/shoal.js') }")
        page.context.set_offline(True)
        page.evaluate(
            """() => {
                 window.heard = [];
                 const onTrouble = trouble => heard.push(trouble && trouble.tries);
                 const cart = {items: ["milk"], zipcode: "10001"};
                 window.submitting = new shoal.Shoal().submit("cart", cart, { onTrouble });
               }"""
        )
        page.wait_for_function("() => heard.length")
        page.context.set_offline(False)
        assert page.evaluate("async () => (await submitting).status") == "queued"
        heard = page.evaluate("heard")
        assert heard == [*range(1, len(heard)), None], "told of the trouble, and of its end"
        assert len(keys) == len(heard) >= 2
        assert len(set(keys)) == 1

    def test_whoever_does_not_want_to_wait_any_more(self, page: Page) -> None:
        ended = page.evaluate(
            """async () => {
                 const { Shoal, JobFailed } = await import("/static/shoal.js");
                 const gateway = new Shoal();
                 const job = await gateway.submit("cart", {items: [..."abcdefgh"], zipcode: "10001"});
                 const asking = new AbortController();
                 const waiting = gateway.wait(job.job_id, {
                   signal: asking.signal, onNews: () => asking.abort(new Error("enough")),
                 });
                 const aborted = await waiting.catch(error => error.message);
                 const until = gateway.wait(job.job_id).catch(error => error);
                 await gateway.cancel(job.job_id);
                 const failed = await until;
                 return [aborted, failed instanceof JobFailed, failed.job.status];
               }"""
        )
        assert ended == ["enough", True, "cancelled"]

    def test_patience_ends(self, page: Page) -> None:
        page.evaluate("async () => { window.shoal = await import('/static/shoal.js') }")
        page.context.set_offline(True)
        heard = page.evaluate(
            """async () => {
                 const heard = [];
                 const gateway = new shoal.Shoal({patience: 1});
                 const options = {onTrouble: trouble => heard.push(trouble.tries)};
                 const lost = await gateway.result("cart-0", options).catch(error => error);
                 return [lost instanceof shoal.Unavailable, lost.message, heard];
               }"""
        )
        assert heard == [True, "The gateway does not answer.", [1]]


@pytest.mark.parametrize(
    "path",
    [
        "/../cart.py",
        "/..%2fcart.py",
        "/%2e%2e/cart.py",
        "/.hidden",
        "/%00",
        "/static/../files.py",
        "/page/index.html",
    ],
)
def test_nothing_else_is_served(shop: str, gateway: Served, path: str) -> None:
    answer = gateway.ask(path)
    assert answer.status == 404
    assert json.loads(answer.raw)["detail"] == "There is nothing here."
