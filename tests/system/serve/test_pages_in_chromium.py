"""Every page of a whole service in Chromium, over TLS and by a session: what browser, axe-core and a keyboard find.

One service and one browser for all tests. With ``TALLYMARK_SCREENSHOTS=docs/pages`` and ``--basetemp /data`` they make
the pictures of the guide.
"""

import io
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest

from tallymark.engine.serve.tokens import add_token
from tallymark.engine.settings import SharedServiceSettings
from tests.engine.serve.test_secure_service import Authority
from tests.system.serve.lake import HOSTILE_NAME, HOSTILE_PATH, build, die_writing, streaming
from tests.system.serve.pages import serving_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page

CHROMIUM = shutil.which("chromium")
IS_COMPLETE = CHROMIUM and find_spec("playwright") and find_spec("axe_playwright_python") and find_spec("PIL")
LACKING = "needs chromium, and playwright, axe-playwright-python and pillow from PyPI"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_COMPLETE and "CI" not in os.environ, reason=LACKING)]

QUIET = ("gpu", "background-networking", "component-update", "sync", "quic")
OPTIONS = ["--no-sandbox", "--no-first-run", *(f"--disable-{each}" for each in QUIET)]

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = {1280: "", 400: "rules: {'color-contrast': {enabled: false}}, "}
"""With what axe-core does there: contrast takes most of its time, and does not depend on the width."""

AXE = "axe.run({{exclude: ['.chart > *', 'tr:nth-child(n + 3):not(.rollback)']}}, {{{}resultTypes: ['violations']}})"
"""Without more rows of a table than two: the same template makes them."""

FOREIGN = "main :is(script, img, iframe, b, i), script:not([src]), [style]"
"""Elements that no template has."""

PICTURE_BYTES = 200_000


@dataclass
class Visitor:
    """A session of a browser, and all that it finds fault with."""

    context: "BrowserContext"
    base: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.set_default_timeout(20_000)
        self.context.on("console", self._hear)
        self.context.on("weberror", lambda error: self.faults.append(str(error.error)))
        self.context.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        self.context.on("request", lambda request: self._check(request.url))

    def _hear(self, said: "ConsoleMessage") -> None:
        is_asked_for = "status of 404" in said.text and said.location["url"].endswith("/unknown")
        if said.type in ("warning", "error") and not is_asked_for:
            self.faults.append(said.text)

    def _check(self, url: str) -> None:
        if not url.startswith(f"{self.base}/"):
            self.faults.append(f"request to {url}")

    def log_in(self, token: str) -> "Page":
        page = self.context.new_page()
        page.goto(f"{self.base}/")
        page.get_by_label("Token").press_sequentially(token)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{self.base}/")
        return page

    def open(self, table: str) -> "Page":
        """Return the page of the table with this name."""
        page = self.context.new_page()
        page.goto(f"{self.base}/")
        follow(page, page.get_by_role("link", name=table, exact=True))
        return page

    def open_job(self, table: str) -> "Page":
        page = self.open(table)
        follow(page, page.locator(JOB))
        return page


def follow(page: "Page", link: "Locator") -> None:
    page.goto(link.first.evaluate("link => link.href"))


JOB, FILE = "a[href*='/jobs/']", "td a[href*='/file?']"


@dataclass
class Scene:
    browser: "Browser"
    base: str
    authority: Authority
    lake: Path

    def visitor(self, **options: Any) -> Visitor:
        return Visitor(self.browser.new_context(ignore_https_errors=True, **options), self.base)

    def token(self, *tables: str) -> str:
        return add_token(self.authority.tokens, "admin", [f"{self.lake}/{each}" for each in tables])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    assert IS_COMPLETE, LACKING
    from playwright.sync_api import sync_playwright

    lake, folder = (tmp_path_factory.mktemp(name, numbered=False) for name in ("lake", "service"))
    anyio.run(build, lake, backend="trio")
    die_writing(lake)
    authority = Authority(folder)
    token = add_token(authority.tokens, "write", [f"{lake}/*"])
    tls = ("--tls-cert", str(authority.cert), "--tls-key", str(authority.key), "--tokens", str(authority.tokens))
    with serving_process(lake, folder, *tls, "--base-path", "/tallymark", "--drain-s", "0") as served:
        service = SharedServiceSettings(url=served.jobs, token=token, ca_file=str(authority.ca_file))
        with streaming(lake / "web/events", service), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
            yield Scene(browser, served.page, authority, lake)
            browser.close()


@pytest.fixture(scope="module")
def session(scene: Scene) -> Visitor:
    visitor = scene.visitor()
    visitor.log_in(scene.token("*"))
    return visitor


@pytest.fixture
def visitor(session: Visitor) -> Iterator[Visitor]:
    """An operator; what the browser finds fault with fails the test."""
    session.faults.clear()
    yield session
    for page in session.context.pages:
        page.close()
    assert session.faults == []


def links(page: "Page", selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(selector, "elements => elements.map(each => each.href)")
    return found


def every_page(visitor: Visitor) -> list[str]:
    page = visitor.open("orders")
    table = page.url
    found = [f"{visitor.base}/", f"{visitor.base}/login", f"{visitor.base}/tables/unknown", f"{table}/file"]
    found += [f"{table}?start=0&end=1", *links(page, JOB)]
    page.goto(f"{table}?start=0&end=1")
    found.append(links(page, FILE)[0])
    for name in ("events", HOSTILE_NAME):
        page = visitor.open_job(name)
        found += [page.url, links(page, FILE)[0]]
    page.goto(f"{visitor.base}/")
    tables = links(page, ".fleet th a")
    assert len(tables) == 10
    return found + tables


def problems(page: "Page", url: str) -> list[str]:
    page.goto(url)
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    found = [element.evaluate("element => element.outerHTML") for element in page.locator(FOREIGN).all()]
    for width, scheme in product(WIDTHS, SCHEMES):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        found += [
            f"{each['id']} at {width} in {scheme}: {each['nodes'][0]['html']}"
            for each in page.evaluate(AXE.format(WIDTHS[width]))["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"scrolls sideways at {width}")
    return [f"{url}: {each}" for each in found]


def test_every_page_can_be_read_by_all_and_loads_nothing_from_elsewhere(visitor):
    page = visitor.context.new_page()
    assert [each for url in every_page(visitor) for each in problems(page, url)] == []


def test_names_with_script_in_them_are_text(visitor):
    pages = [visitor.open(HOSTILE_NAME), visitor.open_job(HOSTILE_NAME), visitor.open_job(HOSTILE_NAME)]
    follow(pages[2], pages[2].locator(FILE))
    for page in pages:
        page.get_by_text(HOSTILE_PATH).first.wait_for()
    assert pages[2].get_by_label("Path below the table").input_value().startswith(HOSTILE_PATH)


def test_pictures_of_the_pages_are_small(scene, tmp_path):
    folder = Path(os.environ.get("TALLYMARK_SCREENSHOTS", tmp_path))
    visitor = scene.visitor(device_scale_factor=1.5, viewport={"width": 1280, "height": 1000})
    page = visitor.log_in(scene.token("sales/*", "web/*", "finance/*", "support/*"))
    picture(page, folder / "fleet.png")
    page.emulate_media(color_scheme="dark")
    picture(page, folder / "fleet-dark.png")
    picture(visitor.open("orders"), folder / "table.png")
    picture(visitor.open_job("events"), folder / "job.png")
    page = visitor.open("ledger")
    page.goto(f"{page.url}?start=0&end=1")
    follow(page, page.locator(FILE))
    picture(page, folder / "file.png")
    visitor.context.close()
    assert visitor.faults == []


def picture(page: "Page", path: Path) -> None:
    from PIL import Image

    height = page.evaluate("Math.min(innerHeight, document.querySelector('main').getBoundingClientRect().bottom)")
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": height})
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(128).save(path)
    assert path.stat().st_size < PICTURE_BYTES


def test_a_page_of_a_job_is_refreshed_and_focus_remains(visitor):
    from playwright.sync_api import expect

    page = visitor.open_job("events")
    page.evaluate("window.isTheSame = true")
    markers, acks = (page.locator(f".figures dt:text-is('{name}') + dd") for name in ("Markers", "Acks a second"))
    before, marker = markers.inner_text(), page.locator(FILE).nth(3)
    marker.focus()
    focused = marker.get_attribute("href")
    expect(markers).not_to_have_text(before, timeout=15_000)
    assert number(markers) > int(before.split()[0])
    assert number(acks) > 0
    assert page.evaluate("[window.isTheSame, document.activeElement.getAttribute('href')]") == [True, focused]


def number(figure: "Locator") -> float:
    return float(figure.inner_text().split()[0].replace(",", ""))


def test_a_dead_writer_is_rolled_back_by_keyboard_and_open_pages_show_it(visitor):
    job, page = visitor.open_job("orders"), visitor.open("orders")
    page.evaluate("window.isTheSame = true")
    instant = page.locator("tr.dead th").inner_text()
    rollback, dialog = page.locator(".finding [data-action=rollback]"), page.get_by_role("dialog")
    for answer in ("Close", "Do it"):
        press_until(page, "Tab", rollback)
        page.keyboard.press("Enter")
        dialog.get_by_role("heading", name="Rollback: what it would do").wait_for()
        press_until(page, "Tab", dialog.get_by_role("button", name=answer))
        page.keyboard.press("Enter")
    dialog.get_by_role("heading", name="Rollback: done").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    page.locator("tr.rollback", has_text=instant).wait_for()
    rollback.wait_for(state="detached")
    assert page.evaluate("window.isTheSame")
    job.get_by_role("heading", name="This job is over").wait_for()


def press_until(page: "Page", key: str, target: "Locator") -> None:
    for _ in range(50):
        if target.evaluate("target => target === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not lead to {target}")


def test_after_a_logout_every_page_leads_to_the_login(scene):
    visitor = scene.visitor()
    page = visitor.log_in(scene.token("*"))
    pages = [page.url, *links(page, ".fleet th a")]
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{visitor.base}/login")
    for url in pages:
        page.goto(url)
        page.get_by_label("Token").wait_for()
        assert page.url.startswith(f"{visitor.base}/login?next=")
    visitor.context.close()
    assert visitor.faults == []
