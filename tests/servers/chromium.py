"""A real Chromium for the tests: Debian's, with an empty profile and nothing that it does by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from servers.proxies import need

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE = 120_000
"""Milliseconds for whatever a test waits for: much, for machines that have much to do."""


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A browser, without a window."""
    program = need("chromium", "chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """Somebody who was never here before. Whatever his pages ask for must be on this machine, and none may break."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    asked: list[str] = []
    broken: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("weberror", lambda error: broken.append(str(error.error)))
    try:
        yield context
    finally:
        context.close()
    outside = [url for url in asked if urlsplit(url).scheme != "data" and urlsplit(url).hostname != "127.0.0.1"]
    assert not outside
    assert not broken
