#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it draws, filters, makes no request, and fits phone and desktop.

    browser.py               on a result made by hand
    browser.py RESULT.json   on a real one
Leaves screenshots in build/report/."""

from __future__ import annotations

import shutil
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from tests.made_by_hand import contestant, result  # noqa: E402
from tests.test_histogram import SUB_BITS, index_of  # noqa: E402
from tocsin_lab.defects import DEFECTS, Findings, Row, Side, Trial  # noqa: E402
from tocsin_lab.measure.results import load  # noqa: E402
from tocsin_lab.present.defects import make_page  # noqa: E402
from tocsin_lab.present.report import write_report  # noqa: E402
from tocsin_lab.records import Result  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / "build" / "report"
PAGE = FOLDER / "report.html"
PHONE, DESKTOP = 390, 1440
DRAWN = "document.documentElement.dataset.drawn === 'all'"
EVIL = "<img src=x>"  # a label that must stay text

CONTESTANTS = [
    contestant("floor", "floor"),
    contestant("tocsin", "ours"),
    contestant("tocsin_no_spin", "variant"),
    contestant("raw_futex", "peer"),
    {**contestant("odd", "peer"), "label": EVIL},
    contestant("exchange", "reference"),
]


def distribution(*nanoseconds: float) -> dict[str, Any]:
    values = [round(one * 1000) for one in nanoseconds]
    counts: dict[int, int] = {}
    for value in values:
        counts[index_of(value)] = counts.get(index_of(value), 0) + 1
    return {"sub_bits": SUB_BITS, "least": min(values), "most": max(values), "counts": sorted(counts.items())}


def column(metric: str, statistic: str, *, judged: bool = True, unit: str = "ns") -> dict[str, Any]:
    return {"metric": metric, "statistic": statistic, "label": metric, "unit": unit, "judged": judged}


def scenario(name: str, columns: list[dict[str, Any]], cases: list[dict[str, str]]) -> dict[str, Any]:
    listed = [{"parameters": one, "tier": "quick", "refusals": {}} for one in cases]
    return {"name": name, "question": f"How fast is {name}?", "method": "by hand", "floor": "nothing",
            "columns": columns, "cases": listed}  # fmt: skip


SCENARIOS = [
    scenario("floors", [column("time", "median", judged=False)], [{"operation": "load"}, {"operation": "exchange"}]),
    scenario("polling", [column("poll", "median")], [{"threads": one} for one in ("1", "2", "16")]),
    scenario("broadcast", [column("held", "median"), column("last", "median")], [{"threads": "1000"}]),
    scenario("strangers", [column("disturbed", "value", unit="count")], [{}]),
]


def samples_of(one: dict[str, Any], given: dict[str, str], who: str, speed: float) -> list[dict[str, Any]]:
    spread = [speed * (1 + step / 40) for step in range(200)]
    found = []
    for round_ in range(1, 7):
        scale = 1 + round_ / 50
        distributions = {each["metric"]: distribution(*(value * scale for value in spread)) for each in one["columns"]}
        if one["name"] == "broadcast":
            distributions["awake"] = distribution(*(value * 1000 for value in spread))
        found.append({"round": round_, "order": 0, "scenario": one["name"], "contestant": who, "parameters": given,
                      "ok": True, "values": {"disturbed": 0.0 if who == "tocsin" else speed},
                      "distributions": distributions, "notes": [], "failures": []})  # fmt: skip
    return found


def made_result() -> Result:
    samples = [
        sample
        for one in SCENARIOS
        for case in one["cases"]
        for speed, who in enumerate(CONTESTANTS, 1)
        if one["name"] != "floors" or who["role"] == "floor"
        for sample in samples_of(one, case["parameters"], who["name"], float(speed))
    ]
    return result(samples, contestants=CONTESTANTS, scenarios=SCENARIOS, interrupted=True)


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_report(load(REAL) if REAL else made_result(), PAGE)
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        # As root, Chromium starts only without its sandbox; it opens nothing but this page.
        cls.browser = cls.playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        cls.addClassCleanup(cls.browser.close)

    def open(self, width: int = DESKTOP, scheme: str = "light", **options: Any) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
        )
        self.addCleanup(context.close)
        page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(PAGE.as_uri())
        if options.get("java_script_enabled", True):
            page.wait_for_function(DRAWN, timeout=120_000)
        return page

    def test_the_page_of_defects(self) -> None:
        path = FOLDER / "defects.html"
        rows = [Row(one.id, Side(trial=Trial(3, 28_961, 6.0, "peer 1", "a note")),
                    Side(trial=Trial(0, 28_961, 6.0, "tocsin")) if one.ours else Side(absent=one.counterpart))
                for one in DEFECTS]  # fmt: skip
        made = made_result()
        path.write_text(make_page(Findings(
            started=made.started or "", finished=made.finished or "", interrupted=True, budget_s=6,
            project=made.project, machine=made.machine, rows=rows,
        )))  # fmt: skip
        for width in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    context = self.browser.new_context(
                        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
                    )
                    self.addCleanup(context.close)
                    page = context.new_page()
                    said: list[str] = []
                    page.on("console", lambda message: said.append(message.text))  # noqa: B023
                    page.on("pageerror", lambda error: said.append(str(error)))  # noqa: B023
                    page.goto(path.as_uri())
                    page.screenshot(path=FOLDER / f"defects-{width}-{scheme}.png", full_page=True)
                    self.assertEqual(said, [])
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    found = Axe().run(page)
                    self.assertEqual(found.violations_count, 0, found.generate_report())

    def labels(self, page: Page, chart: str) -> list[str]:
        return page.locator(f"{chart} svg .mark-text.role-axis-label text").all_text_contents()

    def test_draws_without_messages_and_without_a_network(self) -> None:
        for width in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                with self.subTest(width=width, scheme=scheme):
                    page = self.open(width, scheme)
                    page.screenshot(path=FOLDER / f"{width}-{scheme}.png")
                    page.screenshot(path=FOLDER / f"{width}-{scheme}-whole.png", full_page=True)
                    self.assertEqual(self.said, [])
                    self.assertEqual([one for one in self.asked if not one.startswith(("file:", "data:"))], [])
                    shown = page.locator(".chart:visible").count()
                    self.assertGreater(shown, 5)
                    self.assertEqual(page.locator(".chart:visible svg").count(), shown)

    def open_everything(self, page: Page) -> None:
        page.evaluate("for (const one of document.querySelectorAll('details:not(.filter)')) one.open = true")
        page.wait_for_function(DRAWN, timeout=120_000)

    def test_axe_finds_no_violation(self) -> None:
        for width in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                for whole in (False,) if REAL else (False, True):  # a real one has too many rows for that
                    with self.subTest(width=width, scheme=scheme, whole=whole):
                        page = self.open(width, scheme)
                        if whole:
                            self.open_everything(page)
                        found = Axe().run(page)
                        self.assertEqual(found.violations_count, 0, found.generate_report())

    def test_says_first_what_it_found(self) -> None:
        for width in (PHONE, DESKTOP):
            page = self.open(width)
            box = page.locator("#finding").bounding_box()
            self.assertLess(box["y"] + box["height"], 700)
            self.assertRegex(page.inner_text("#finding"), r"takes less in \d+.*is not slower in \d+.*takes more in \d+")
            for link in page.locator("#finding a").all():
                self.assertEqual(page.locator(link.get_attribute("href")).count(), 1)

    def test_the_bar_shows_all_its_links_and_hides_no_heading(self) -> None:
        for width in (PHONE, DESKTOP):
            page = self.open(width)
            self.assertEqual(page.evaluate(CUT_LINKS), [], width)
            page.click(".links a[href='#scenarios']")
            bar = page.locator("nav.bar").bounding_box()
            self.assertGreaterEqual(page.locator("#scenarios h2").bounding_box()["y"], bar["y"] + bar["height"], width)

    def test_a_scenario_is_short_until_it_is_opened(self) -> None:
        page = self.open()
        for scenario in page.locator("article.scenario").all():
            self.assertLessEqual(scenario.locator(".chart:visible").count(), 2)
            self.assertLess(scenario.bounding_box()["height"], 750)

    def test_a_phone_shows_every_column(self) -> None:
        page = self.open(PHONE)
        self.open_everything(page)
        lost = page.evaluate(
            """[...document.querySelectorAll('td, tbody th, .reason')].filter((cell) => cell.innerText.trim() &&
               (cell.getBoundingClientRect().right > innerWidth || cell.getBoundingClientRect().left < 0)).length"""
        )
        self.assertEqual(lost, 0)
        named = page.evaluate(
            """[...document.querySelectorAll('td')].filter((cell) => cell.innerText.trim() &&
               getComputedStyle(cell, '::before').content.match(/^"[^"]/)).length"""
        )
        filled = page.evaluate("[...document.querySelectorAll('td')].filter((cell) => cell.innerText.trim()).length")
        self.assertEqual(named, filled)

    def test_series_can_be_told_apart(self) -> None:
        for scheme in ("light", "dark"):
            page = self.open(scheme=scheme)
            near = page.evaluate(DISTANCES, ["--ours", "--floor", *(f"--c{index}" for index in range(7))])
            self.assertGreater(min(near), 0.12)
        looks = page.evaluate(
            """[...document.querySelectorAll('.filter .swatch')].map((one) => one.style.color + one.innerHTML)"""
        )
        self.assertEqual(len(looks), len(set(looks)))

    def test_nothing_is_wider_than_the_window(self) -> None:
        for width in (PHONE, DESKTOP):
            page = self.open(width)
            self.open_everything(page)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
            wide = page.evaluate(
                """[...document.querySelectorAll('.chart svg')].filter((svg) =>
                   svg.getBoundingClientRect().right > innerWidth ||
                   [...svg.querySelectorAll('text')].some((text) => text.getBoundingClientRect().left < 0)).length"""
            )
            self.assertEqual(wide, 0)
            self.assertEqual(self.said, [])

    def test_the_ticks_of_an_axis_are_apart(self) -> None:
        for width in (PHONE, DESKTOP):
            page = self.open(width)
            self.open_everything(page)
            self.assertEqual(page.evaluate(TOUCHING), [], width)

    def test_the_filter_takes_contestants_out_of_charts_and_tables(self) -> None:
        page = self.open()
        self.open_everything(page)
        rows = page.locator("tr[data-who=tocsin]:visible")
        self.assertGreater(rows.count(), 0)
        page.click("#filter > summary")
        page.uncheck("input[value=tocsin]")
        page.wait_for_function(DRAWN)
        self.assertEqual(rows.count(), 0)
        self.assertNotIn("tocsin", page.locator(".chart:visible").all_inner_texts())
        self.assertNotIn("tocsin", self.labels(page, ".card"))
        page.click("[data-preset=all]")
        page.wait_for_function(DRAWN)
        self.assertGreater(rows.count(), 0)
        self.assertIn("tocsin", self.labels(page, ".card"))
        self.assertEqual(self.said, [])

    @unittest.skipIf(len(sys.argv) > 1, "a real result has other contestants")
    def test_presets_and_an_empty_choice(self) -> None:
        page = self.open()
        page.click("#filter > summary")
        page.click("[data-preset=main]")
        page.wait_for_function(DRAWN)
        self.assertFalse(page.is_checked("input[value=tocsin_no_spin]"))
        self.assertTrue(page.is_checked("input[value=raw_futex]"))
        page.click("[data-preset=none]")
        page.wait_for_function(DRAWN)
        self.assertEqual(page.locator(".chart:visible svg").count(), 0)
        self.assertIn("None of", page.locator(".chart:visible").first.inner_text())
        self.assertIn("0 of", page.inner_text("#count"))
        self.assertEqual(self.said, [])

    def test_historic_figures_come_and_go_with_their_machines(self) -> None:
        page = self.open()
        page.click("#scenario-polling details.cases > summary")
        page.locator("#scenario-polling details.case > summary").last.click()
        page.wait_for_function(DRAWN)
        self.assertIn("Core i7 870, 4 cores, Windows 7", " ".join(self.labels(page, "#scenario-polling")))
        page.click("#filter > summary")
        page.uncheck("#historic")
        page.wait_for_function(DRAWN)
        self.assertNotIn("Core i7", " ".join(self.labels(page, "#scenario-polling")))

    def test_the_keyboard_reaches_everything(self) -> None:
        page = self.open()
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        page.focus("#filter > summary")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.dataset.preset"), "all")
        page.keyboard.press("Escape")
        self.assertEqual(page.evaluate("document.getElementById('filter').open"), False)
        self.open_everything(page)
        page.wait_for_function(
            """[...document.querySelectorAll('.scroll')].every((one) => one.ariaLabel &&
               (one.tabIndex === 0) === (one.scrollWidth > one.clientWidth))"""
        )

    def test_every_chart_has_words_for_screen_readers(self) -> None:
        page = self.open()
        silent = page.evaluate("[...document.querySelectorAll('[role=img]')].filter((one) => !one.ariaLabel).length")
        self.assertEqual(silent, 0)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((one) => Number(one.tagName[1]))")
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(after - before <= 1 for before, after in zip(levels, levels[1:])))

    def test_colours_follow_the_system_until_the_reader_chooses(self) -> None:
        page = self.open(scheme="dark")
        colour = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(colour)
        page.emulate_media(color_scheme="light")
        page.wait_for_function(f"{colour} !== {dark!r}")
        page.click("#theme")
        page.click("#theme")
        self.assertEqual((page.inner_text("#theme"), page.evaluate(colour)), ("Dark", dark))

    def test_text_stands_out_in_both_colours(self) -> None:
        for scheme in ("light", "dark"):
            page = self.open(scheme=scheme)
            for name, least in (("--ink", 7.0), ("--soft", 4.5), ("--ours", 4.5), ("--loss", 4.5), ("--win", 4.5),
                                ("--floor", 4.5), ("--historic", 4.5), *((f"--c{index}", 3.0) for index in range(7))):
                for ground in ("--paper", "--panel"):
                    with self.subTest(scheme=scheme, name=name, ground=ground):
                        self.assertGreaterEqual(page.evaluate(CONTRAST, [name, ground]), least)

    def test_prints_every_chart_that_is_open_on_white(self) -> None:
        page = self.open(scheme="dark")
        page.emulate_media(media="print", color_scheme="dark")
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.assertFalse(page.is_visible("nav.bar"))
        page.pdf(path=FOLDER / "report.pdf", format="A4")
        self.assertEqual(page.locator(".chart:visible svg").count(), page.locator(".chart:visible").count())

    def test_tables_and_answers_need_no_script(self) -> None:
        page = self.open(java_script_enabled=False)
        self.assertGreater(page.locator("main table").count(), 3)
        self.assertGreater(page.locator(".winner").count(), 0)

    @unittest.skipIf(len(sys.argv) > 1, "a real result has no such name, and may be whole")
    def test_names_stay_text_and_the_page_says_that_a_run_is_partial(self) -> None:
        page = self.open()
        self.assertIn(EVIL, self.labels(page, ".card"))
        self.assertEqual(page.locator("img").count(), 0)
        self.assertTrue(page.is_visible("#partial"))


# Pairs of labels of one horizontal axis with less than 4 pixels between them.
TOUCHING = """[...document.querySelectorAll('.chart svg .role-axis-label')].flatMap((axis) => {
  const boxes = [...axis.querySelectorAll('text')].filter((text) => getComputedStyle(text).opacity !== '0')
    .map((text) => ({text: text.textContent, box: text.getBoundingClientRect()})).filter((one) => one.text)
    .sort((one, other) => one.box.left - other.box.left);
  return boxes.slice(1).filter((one, at) => Math.abs(one.box.top - boxes[at].box.top) < 3 &&
    one.box.left - boxes[at].box.right < 4).map((one) => one.text);
})"""

# Links of the bar that a reader can't see without scrolling the bar.
CUT_LINKS = """[...document.querySelectorAll('.links a')].filter((link) => {
  const bar = link.parentElement.getBoundingClientRect();
  const box = link.getBoundingClientRect();
  return box.right > bar.right || box.left < bar.left || box.bottom > bar.bottom;
}).map((link) => link.text)"""

CONTRAST = """([text, ground]) => {
  const style = getComputedStyle(document.documentElement);
  const luminance = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
    const [r, g, b] = parts.map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [light, dark] = [luminance(text), luminance(ground)].sort((one, other) => other - one);
  return (light + 0.05) / (dark + 0.05);
}"""

DISTANCES = """(names) => {
  // In OKLab, where equal distances look alike.
  const style = getComputedStyle(document.documentElement);
  const lab = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
    const [r, g, b] = parts.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
  };
  const labs = names.map(lab);
  return labs.flatMap((one, at) => labs.slice(at + 1).map((other) =>
    Math.hypot(...one.map((value, index) => value - other[index]))));
}"""

REAL = Path(sys.argv[1]) if len(sys.argv) > 1 else None

if __name__ == "__main__":
    outcome = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(BrowserTest))
    bad = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - bad - len(outcome.skipped)} passed, {bad} failed, {len(outcome.skipped)} skipped")
    sys.exit(bool(bad))
