# SPDX-License-Identifier: Apache-2.0
"""Result files: whole, readable again, and never lost."""

import io
import json
import os
import stat
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.made_by_hand import result, sample, stored
from tocsin_lab import files
from tocsin_lab.measure import results
from tocsin_lab.parsing import as_json


class SaveTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.samples = [sample("tocsin", 1, time=1.5), sample("fast", 1, time=2.5)]
        self.result = result(self.samples)

    def test_comes_back_as_it_was(self) -> None:
        path = self.folder / "new" / "result.json"
        results.save(self.result, path)
        self.assertEqual(results.load(path), self.result)

    def test_has_a_sample_a_line(self) -> None:
        path = self.folder / "result.json"
        results.save(self.result, path)
        lines = [line for line in path.read_text().splitlines() if line.startswith('{"round"')]
        self.assertEqual(len(lines), 2)

    def test_what_cannot_be_written_is_printed(self) -> None:
        out, errors = io.StringIO(), io.StringIO()
        saved = results.save_or_print(self.result, Path("/proc/no/such/result.json"), out, errors)
        self.assertFalse(saved)
        self.assertEqual(json.loads(out.getvalue()), as_json(self.result))
        self.assertIn("can't be written", errors.getvalue())

    def test_where_nothing_can_be_printed_it_goes_to_the_errors(self) -> None:
        class Full(io.StringIO):
            def flush(self) -> None:
                raise OSError(28, "No space left on device")

        errors = io.StringIO()
        self.assertFalse(results.save_or_print(self.result, Path("/proc/no/such/result.json"), Full(), errors))
        said, _, text = errors.getvalue().partition("nor can it be printed: No space left on device; here it is")
        self.assertIn("can't be written", said)
        self.assertEqual(json.loads(text), as_json(self.result))

    def test_an_unbuffered_output_that_takes_a_part_only_is_no_success(self) -> None:
        full = open("/dev/full", "wb", buffering=0)
        self.addCleanup(full.close)
        errors = io.StringIO()
        out = io.TextIOWrapper(full, write_through=True)
        results.save_or_print(self.result, Path("/proc/no/such/result.json"), out, errors)
        self.assertIn("nor can it be printed", errors.getvalue())
        out.detach()

    def test_what_is_in_the_way_is_known_beforehand(self) -> None:
        self.assertIsNone(files.why_not_writable(self.folder / "new" / "result.json"))
        self.assertEqual(files.why_not_writable(self.folder), "Is a directory")
        self.assertIsNotNone(files.why_not_writable(Path("/proc/no/such/result.json")))

    def test_a_full_disk_leaves_no_half_file_and_loses_nothing(self) -> None:
        path = self.folder / "result.json"
        out = io.StringIO()
        with mock.patch.object(files.os, "fsync", side_effect=OSError(28, "No space left on device")):
            self.assertFalse(results.save_or_print(self.result, path, out, io.StringIO()))
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(json.loads(out.getvalue()), as_json(self.result))

    def test_only_regular_files_are_replaced(self) -> None:
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        out = io.StringIO()
        self.assertFalse(results.save_or_print(self.result, pipe, out, io.StringIO()))
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))
        self.assertEqual(json.loads(out.getvalue()), as_json(self.result))
        self.assertEqual(files.why_not_writable(pipe), "Is no regular file")

    def test_a_link_stays_and_its_target_is_written(self) -> None:
        link, target = self.folder / "link.json", self.folder / "target.json"
        link.symlink_to(target)
        results.save(self.result, link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(results.load(target), self.result)

    def test_other_files_are_refused(self) -> None:
        for text in ("", "[]", '{"format": 99}', '{"format": 1}', "no json"):
            path = self.folder / "other.json"
            path.write_text(text)
            with self.assertRaises(results.ResultError):
                results.load(path)

    def test_a_wrong_part_is_named(self) -> None:
        path = self.folder / "wrong.json"
        wrong = stored(self.samples)
        wrong["samples"][1]["values"] = {"time": "soon"}
        path.write_text(json.dumps(wrong))
        with self.assertRaisesRegex(results.ResultError, "samples.1.values.time: expected float, found 'soon'"):
            results.load(path)

    def test_committed_results_can_be_read(self) -> None:
        for path in sorted((Path(__file__).resolve().parents[1] / "results").glob("*.json.xz")):
            with self.subTest(path.name):
                self.assertGreater(len(results.load(path).samples), 1_000)


if __name__ == "__main__":
    unittest.main()
