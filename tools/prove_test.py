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
import spin_check  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent


class Mutants(unittest.TestCase):
    def test_the_code_of_each_occurs_once_and_its_filter_selects_a_case(self):
        names = [mutant["name"] for mutant in mutants.load()]
        self.assertEqual(len(names), len(set(names)))

    def test_a_filter_selects_cases_by_name(self):
        for run in ("event_model_test:*", "event_model_test:*ASetOnASet*", "mix_model_test:*ThreeWaits*/1"):
            self.assertTrue(mutants.selects(run), run)
        self.assertFalse(mutants.selects("event_model_test:*NoSuchCase*"))


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
class Timeout(unittest.TestCase):
    def timeout(self, **environment):
        """The limit of a case that has one of 600 s."""
        with tempfile.TemporaryDirectory() as folder:
            script = ROOT / "cmake" / "prove_timeout.cmake"
            (Path(folder) / "CTestTestfile.cmake").write_text(
                'add_test("a b" true)\nset_tests_properties("a b" PROPERTIES TIMEOUT 600)\n'
                f'set(cases "a b")\nset(lists cases none)\ninclude("{script}")\n')
            shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, capture_output=True, check=True,
                                   env={**os.environ, **environment}).stdout
        properties = json.loads(shown)["tests"][0]["properties"]
        return next(each["value"] for each in properties if each["name"] == "TIMEOUT")

    def test_a_proof_may_search_for_hours(self):
        self.assertEqual(600, self.timeout())
        self.assertEqual(12 * 3600, self.timeout(TOCSIN_PROVE="1"))


if __name__ == "__main__":
    unittest.main()
