# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import mutants  # noqa: E402
import prove  # noqa: E402
import spin_check  # noqa: E402
from dev import python_mutants  # noqa: E402
from shards import Shard, shard  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


class Mutants(unittest.TestCase):
    def test_the_code_of_each_occurs_once_and_its_filter_selects_a_case(self):
        names = [mutant["name"] for mutant in mutants.load()]
        self.assertEqual(len(names), len(set(names)))

    def test_the_code_of_each_of_the_python_package_occurs_once(self):
        self.assertGreater(len(list(python_mutants.mutants())), 50)

    def test_a_text_says_what_is_deleted_replaced_and_added(self):
        tables = {"a.cpp": {"one_test with 2 buckets:*": {"P1": {"a name": "[-x();-] y([-1-]{+2+}){+ + z+};"}}}}
        self.assertEqual([{"name": "a name", "proof": "P1", "file": "a.cpp", "run": "one_test:*", "buckets": 2,
                           "old": "x(); y(1);", "new": " y(2) + z;"}], list(mutants.mutants_of(tables)))

    def test_every_order_and_fence_is_weakened_or_dropped_by_one(self):
        self.assertEqual([], list(mutants.not_planted(mutants.load())))

    def test_an_order_that_none_weakens_is_named(self):
        known = [mutant for mutant in mutants.load() if "state.load(std::memory_order_acquire)" not in mutant["old"]]
        self.assertIn("include/tocsin/detail/event_state.hpp", str(list(mutants.not_planted(known))))

    def test_a_filter_selects_cases_by_name(self):
        for run in ("event_model_test:*", "event_model_test:*ASetOnASet*", "mix_model_test:*ThreeWaits*/1"):
            self.assertTrue(mutants.selects(run), run)
        self.assertFalse(mutants.selects("event_model_test:*NoSuchCase*"))


class Shards(unittest.TestCase):
    def test_everything_is_in_exactly_one(self):
        for total in (1, 2, 5, 9):
            parts = [Shard(number, total).of(list(range(7))) for number in range(1, total + 1)]
            self.assertEqual(list(range(7)), sorted(sum(parts, [])))
            self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)

    def test_one_is_named_by_its_number_and_how_many_there_are(self):
        self.assertEqual(Shard(2, 5), shard("2/5"))
        for text in ("", "2", "2/", "/5", "0/5", "6/5", "-1/5", "a/b", "1/2/3", "2 5"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=text):
                shard(text)

    def test_what_is_not_split_is_in_the_first(self):
        self.assertEqual(list(prove.STAGES), prove.stages_of(prove.parse([])))
        self.assertEqual(list(prove.STAGES), prove.stages_of(prove.parse(["--shard", "1/2"])))
        self.assertEqual(["models", "mutants"], prove.stages_of(prove.parse(["--shard", "2/2"])))
        self.assertEqual(["mutants"], prove.stages_of(prove.parse(["--bounded", "--shard", "2/2"])))

    def test_a_shard_without_any_work_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            prove.parse(["--only", "fuzz", "--shard", "2/2"])
        self.assertIn("fuzz is not split", said.getvalue())

    @unittest.skipUnless(shutil.which("ctest"), "needs ctest")
    def test_each_model_runs_in_exactly_one(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = []
            for number in range(5):
                lines += [f"add_test(other{number} true)", f"add_test(model{number} true)",
                          f"set_tests_properties(model{number} PROPERTIES LABELS model)"]
            (Path(folder) / "CTestTestfile.cmake").write_text("\n".join(lines))
            ran = []
            for number in (1, 2, 3):
                command = prove.models_command(folder, Shard(number, 3))
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                ran += re.findall(r"^ *\d+/\d+ Test +#\d+: (\w+)", output, re.MULTILINE)
        self.assertEqual([f"model{number}" for number in range(5)], sorted(ran))


class Differences(unittest.TestCase):
    def test_each_file_that_models_compile_otherwise_is_in_the_table(self):
        text = (ROOT / "docs" / "proofs.md").read_text()
        rows = re.findall(r"^\| ((?:src|include)/[^|]+?) \|", text, re.MULTILINE)
        named = set()
        for row in rows:
            files = row.split(", ")
            # A name without a folder is in the folder of the name before it.
            named |= {name if "/" in name else f"{files[0].rpartition('/')[0]}/{name}" for name in files}
        found = {path.relative_to(ROOT).as_posix() for part in ("src", "include")
                 for path in (ROOT / part).rglob("*.[ch]pp")
                 if re.search(r"^(#|    ).*defined\(TOCSIN_MODEL\)", path.read_text(), re.MULTILINE)}
        self.assertEqual(found, named)


class Spin(unittest.TestCase):
    def test_each_mutant_and_witness_is_in_its_model(self):
        for case in spin_check.CASES:
            model = (spin_check.MODELS / f"{case.model}.pml").read_text()
            for name in case.bounds:
                self.assertTrue(re.search(rf"^#(el)?if.*\b{name}\b", model, re.MULTILINE), f"{case.model}: {name}")

    def test_each_mutant_and_witness_of_a_model_is_a_case(self):
        known = {name for case in spin_check.CASES for name in case.bounds}
        for model in spin_check.MODELS.glob("*.pml"):
            for name in re.findall(r"\b(?:MUTANT|WITNESS)_\w+[A-Z]\b", model.read_text()):
                self.assertIn(name, known, model.name)


@unittest.skipUnless(shutil.which("ctest"), "needs ctest")
class Cases(unittest.TestCase):
    def property(self, wanted, long="", slow="", **environment):
        """A property of a case of the models that has a limit of 600 s; `long` and `slow` are what these lists say."""
        with tempfile.TemporaryDirectory() as folder:
            script = ROOT / "cmake" / "prove.cmake"
            for name, case in (("long", long), ("slow", slow)):
                (Path(folder) / f"{name}.txt").write_text(f"# A comment.\n{case}\n")
            (Path(folder) / "CTestTestfile.cmake").write_text(
                'add_test("a b" true)\nset_tests_properties("a b" PROPERTIES TIMEOUT 600 LABELS model)\n'
                f'set(cases "a b")\nset(lists cases none)\nset(folder "{folder}")\ninclude("{script}")\n')
            shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, check=True,
                                   env={**os.environ, **environment}).stdout
        properties = json.loads(shown)["tests"][0]["properties"]
        return next(each["value"] for each in properties if each["name"] == wanted)

    def test_a_proof_may_search_for_hours(self):
        self.assertEqual(600, self.property("TIMEOUT"))
        self.assertEqual(12 * 3600, self.property("TIMEOUT", TOCSIN_PROVE="1"))

    def test_a_long_case_says_so(self):
        self.assertEqual(["model"], self.property("LABELS"))
        self.assertEqual(["model"], self.property("LABELS", "a b c"))
        self.assertEqual(["long", "model"], sorted(self.property("LABELS", long="a b")))
        self.assertEqual(["model", "slow"], sorted(self.property("LABELS", slow="a b")))
        self.assertEqual(["long", "model"], sorted(self.property("LABELS", long="a b", slow="a b")))

    def test_the_listed_cases_exist(self):
        lines = [line for name in ("long", "slow") for line in
                 (ROOT / "tests" / "model" / f"{name}.txt").read_text().splitlines()]
        for case in (line for line in lines if not line.startswith("#")):
            program, suite, name = case.replace("_two_buckets", "").split(".")
            source = (ROOT / "tests" / "model" / f"{program}.cpp").read_text()
            self.assertTrue(re.search(rf"^(MODEL_)?TEST(_F|_P)?\({suite},\s*{name}[,)]", source, re.MULTILINE), case)


if __name__ == "__main__":
    unittest.main()
