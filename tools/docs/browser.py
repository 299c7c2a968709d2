#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site of `./dev docs` in a real browser, without a network: no link is dead, the search finds names, no page is
wider than a phone, and axe finds nothing to complain of, in light and in dark."""

from __future__ import annotations

import shutil
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).resolve().parents[2] / "build" / "docs" / "site"
PHONE, NOTEBOOK, DESKTOP = 390, 1280, 1440
LOOKED_AT = ("index.html", "include/tocsin/event.hpp.html", "docs/guide.html", "docs/decisions/README.html",
             "docs/coming_from_questions.html", "docs/platforms.html")


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        # As root, Chromium starts only without its sandbox; it opens nothing but this site.
        cls.browser = cls.playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        cls.addClassCleanup(cls.browser.close)

    def open(self, name: str, width: int = DESKTOP, scheme: str = "light", **options: Any) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
        )
        self.addCleanup(context.close)
        page = context.new_page()
        page.goto((SITE / name).as_uri())
        return page

    def test_no_link_is_dead(self) -> None:
        page = self.open("index.html")
        ids: dict[Path, set[str]] = {}
        dead = []
        pages = sorted(SITE.rglob("*.html"))
        links = []
        for one in pages:
            page.goto(one.as_uri())
            ids[one] = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
            links += [(one, each) for each in page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")]
        for one, link in links:
            url = urlparse(link)
            to = Path(unquote(url.path))
            if url.scheme == "file" and (not to.is_file() or (
                    url.fragment and to in ids and unquote(url.fragment) not in ids[to])):
                dead.append(f"{one.relative_to(SITE)}: {link}")
        self.assertEqual(dead, [])
        self.assertGreater(len(links), 1000)

    def test_the_search_finds_names(self) -> None:
        for name, header in (("wait_any", "wait.hpp"), ("counting_semaphore", "semaphore.hpp"), ("submit", "group_commit")):
            with self.subTest(name):
                page = self.open("search.html")
                page.goto((SITE / "search.html").as_uri() + f"?q={name}")
                page.wait_for_selector("#search-results li a", timeout=30_000)
                page.wait_for_timeout(500)
                found = page.eval_on_selector_all("#search-results li a", "all => all.map(one => one.href)")
                self.assertTrue(any(header in each for each in found), f"{name}: {found}")

    def test_the_reference_comes_before_the_decisions(self) -> None:
        for name, first in (("wait_any", "wait.hpp"), ("auto_reset_event", "event.hpp"), ("counting_semaphore", "semaphore.hpp")):
            with self.subTest(name):
                page = self.open("search.html")
                page.goto((SITE / "search.html").as_uri() + f"?q={name}")
                page.wait_for_selector("#search-results li a", timeout=30_000)
                page.wait_for_timeout(500)
                found = page.eval_on_selector_all("#search-results li a", "all => all.map(one => one.href)")
                self.assertIn(f"include/tocsin/{first}", found[0])

    def test_no_page_is_wider_than_its_window_and_no_column_is_cut(self) -> None:
        for name in LOOKED_AT:
            for width in (PHONE, NOTEBOOK):
                page = self.open(name, width)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, name)
                cut = page.evaluate("[...document.querySelectorAll('.table-wrapper')].filter("
                                    "one => one.scrollWidth > one.clientWidth + 1).length")
                self.assertEqual(cut, 0, f"{name} at {width}")

    def test_the_picture_takes_no_room_from_the_program_beside_it(self) -> None:
        for width in (PHONE, 430, NOTEBOOK):
            page = self.open("index.html", width)
            [room, needed] = page.evaluate("(one => [one.clientWidth, one.parentElement.parentElement.clientWidth])"
                                           "(document.querySelector('article pre'))")
            self.assertGreaterEqual(room, 0.95 * needed, width)

    def test_axe_has_nothing_to_complain_of(self) -> None:
        for name in LOOKED_AT:
            for scheme in ("light", "dark"):
                with self.subTest(name, scheme=scheme):
                    found = Axe().run(self.open(name, scheme=scheme))
                    self.assertEqual(found.violations_count, 0, found.generate_report())


if __name__ == "__main__":
    unittest.main()
