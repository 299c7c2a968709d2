# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent))
from dev import compilers, distributions, needs, old_glibc, packages, python_package  # noqa: E402
from dev import run, stages, tree, verbs  # noqa: E402

# Without what makes Python keep no compiled files and no output back.
AS_USERS_HAVE_IT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
CTEST = """<testsuite>
<testcase name="a" time="1" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" time="301" status="fail"><failure message=""/><system-out>last words</system-out></testcase>
<testcase name="c" time="1" status="fail"><failure message=""/><system-out></system-out></testcase>
<testcase name="d" time="0" status="disabled"/>
<testcase name="e" time="0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
<testcase name="f" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="h.A.b" time="0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>a.cpp:5: Skipped
no tracing here
</system-out></testcase>
<testcase name="h.A.c" time="0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>a.cpp:9: Skipped
no tracing here
</system-out></testcase>
<testcase name="g" time="1" status="run"><system-out>[  PASSED  ] 7 tests.
[  SKIPPED ] 2 tests, listed below:</system-out></testcase>
</testsuite>
"""
CTEST_LOG = """1/7 Test #2: b ....***Timeout 301.00 sec
2/7 Test #3: c ....***Exception: SegFault  1.00 sec
3/7 Test #6: f ....***Not Run   0.00 sec
"""


class Answers(unittest.TestCase):
    """What `./dev` says at once, in a tree in which nothing is built and where no other program can be found."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.root = Path(folder.name).resolve() / "a tree"
        self.root.mkdir()
        shutil.copy(tree.ROOT / "dev", self.root)
        skip = shutil.ignore_patterns("__pycache__", "build", "results", "*.hpp", "runtimes", "crates", "tests")
        for part in ("tools", "lab"):
            shutil.copytree(tree.ROOT / part, self.root / part, ignore=skip)
        shutil.copy(tree.ROOT / "CMakePresets.json", self.root)
        self.before = sorted(self.root.rglob("*"))

    def dev(self, *arguments, python=True):
        """Where no program but Python can be found, or not even that."""
        programs = Path(tempfile.mkdtemp(dir=self.folder))
        for program in ("dirname", "id"):
            (programs / program).symlink_to(shutil.which(program))
        if python:
            (programs / "python3").symlink_to(sys.executable)
        environment = {**AS_USERS_HAVE_IT, "PATH": str(programs)}
        began = time.monotonic()
        result = subprocess.run([self.root / "dev", *arguments], env=environment, text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
        self.assertLess(time.monotonic() - began, 30)
        self.assertNotIn("Traceback", result.stderr)
        return result

    def test_without_python_it_names_what_is_missing(self):
        result = self.dev("test", python=False)
        self.assertEqual((2, ""), (result.returncode, result.stdout))
        self.assertIn("missing: Python 3.11 or newer (in Debian: python3)", result.stderr)
        self.assertEqual(self.before, sorted(self.root.rglob("*")))

    def test_help_needs_no_network_and_no_build(self):
        for arguments in (("--help",), ("lab", "--help"), ("lab", "-h"), ("lab", "report", "--help"),
                          ("test", "--help"), ("test", "--list"), ("prove", "--help"), ("docs", "--help"),
                          ("soak", "-h"), ("clean", "--help")):
            with self.subTest(arguments):
                result = self.dev(*arguments)
                self.assertEqual((0, ""), (result.returncode, result.stderr))
                self.assertIn(arguments[0].strip("-"), result.stdout + "help")
        self.assertEqual(self.before, sorted(self.root.rglob("*")))

    def test_wrong_arguments_are_refused_at_once(self):
        for arguments, part in ((("nonsense",), "nonsense"), (("tset",), "unknown verb `tset`; did you mean `test`?"),
                                (("test", "tsna"), "unknown stage `tsna`; did you mean `tsan`?"),
                                (("lab", "raport"), "unknown verb raport (did you mean report?)"), (("lab", "--nonsense"), "--nonsense"),
                                (("lab", "--smok"), "unknown option --smok (did you mean --smoke?)"),
                                (("lab", "nonsense"), "nonsense"), (("lab", "--rounds", "-1"), "--rounds"),
                                (("lab", "--scenario", "tset"), "unknown scenario tset (did you mean select?); valid: "),
                                (("test", "nonsense"), "nonsense"), (("test", "--nonsense"), "--nonsense"),
                                (("test", "--lits"), "unknown option `--lits`; did you mean `--list`? valid: --help, "),
                                (("test", "--lis"), "unknown option `--lis`; did you mean `--list`?"),
                                (("release", "--reslut=x"), "unknown option `--reslut`; did you mean `--result`?"),
                                (("prove", "--bonded"), "unknown option `--bonded`; did you mean `--bounded`?"),
                                (("prove", "extra"), "takes no argument `extra`"),
                                (("test", "check", "-R", "x"), "no cases to choose from"),
                                (("test", "--minutes", "0"), "--minutes takes a number above 0"),
                                (("test", "--minutes", "soon"), "--minutes"),
                                (("soak", "soon"), "usage"), (("prove", "--nonsense"), "--nonsense"),
                                (("clean", "all"), "clean takes no arguments")):
            with self.subTest(arguments):
                result = self.dev(*arguments)
                self.assertEqual((2, ""), (result.returncode, result.stdout))
                self.assertIn(part, result.stderr)
        self.assertEqual(self.before, sorted(self.root.rglob("*")))

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        for arguments in (("--help",), ("lab", "--help"), ("test", "--list")):
            with self.subTest(arguments):
                reader, writer = os.pipe()
                os.close(reader)  # as `head` has, once it has read its lines
                result = subprocess.run([sys.executable, tree.ROOT / "tools" / "dev", *arguments], stdout=writer,
                                        env=AS_USERS_HAVE_IT, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
                os.close(writer)
                self.assertEqual((0, ""), (result.returncode, result.stderr))

    def test_a_tree_that_cannot_be_written_to_is_named(self):
        (self.root / "build").write_text("")  # permissions do not stop root
        result = self.dev("test", "dev")
        self.assertEqual(2, result.returncode)
        self.assertIn(f"cannot write to {self.root}/build", result.stderr)
        self.assertEqual(1, len(result.stderr.splitlines()))


class Counts(unittest.TestCase):
    def read(self):
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder)
            (logs / "x.xml").write_text(CTEST)
            (logs / "x-test.log").write_text(CTEST_LOG)
            said = io.StringIO()
            with mock.patch.object(run, "LOGS", logs), mock.patch.object(run, "ROOT", logs), \
                    contextlib.redirect_stdout(said):
                count = run.read_junit(logs / "x.xml", "x-test")
            return count, said.getvalue(), (logs / "x-skipped.log").read_text()

    def test_cases_are_counted_also_inside_of_whole_programs(self):
        count = self.read()[0]
        self.assertEqual(run.Count(passed=8, failed=3, skipped=6), count)
        self.assertEqual(["b", "c", "f"], [failure.name for failure in count.failures])

    def test_no_stage_begins_when_the_time_is_over(self):
        said = io.StringIO()
        stage = stages.Stage("", lambda only: run.one(True))
        with mock.patch.dict(stages.STAGES, {"x": stage, "y": stage, "z": stage}), contextlib.redirect_stdout(said), \
                mock.patch.object(time, "monotonic", itertools.chain([0], itertools.repeat(60)).__next__):
            self.assertEqual(run.Count(), stages.run(["x", "y"], minutes=0.5))
            self.assertEqual(run.Count(passed=2), stages.run(["y", "z"], minutes=1))
        self.assertIn("left out, because 0.5 minutes are over: x, y\n", said.getvalue())

    def test_what_failed_is_named_once_more_below_the_table(self):
        said = io.StringIO()
        stage = stages.Stage("", lambda only: run.Count(failed=1, failures=[run.Failure("b")]) + run.one(False))
        with mock.patch.dict(stages.STAGES, {"x": stage}), contextlib.redirect_stdout(said):
            stages.run(["x"])
        self.assertIn("\nfailed in x: b\n", said.getvalue())
        self.assertTrue(said.getvalue().endswith("\n0 passed, 2 failed\n"))

    def test_a_case_that_failed_says_how_and_where_its_output_is(self):
        said = self.read()[1]
        self.assertIn("--- b TIMED OUT after 301.0 s; all output is in x-test.log", said)
        self.assertIn("--- c FAILED (Exception: SegFault) after 1.0 s", said)
        self.assertIn("--- f FAILED (Not Run)", said)
        self.assertIn("last words", said)

    def test_cases_are_skipped_in_one_line_for_each_reason_and_their_names_are_in_a_log(self):
        _, said, names = self.read()
        self.assertIn("  skipped    2: no tracing here\n  skipped    1: in e\n  skipped    1: left out here\n"
                      "   their names: x-skipped.log\n", said)
        self.assertIn("no tracing here: h.A.b\nno tracing here: h.A.c\n", names)
        self.assertIn("left out here: d\n", names)

    def test_the_gist_of_an_output_is_its_end_without_what_every_program_prints(self):
        said = """Running main() from gtest_main.cc
Note: Google Test filter = A.b
[==========] Running 2 tests from 1 test suite.
[----------] Global test environment set-up.
[ RUN      ] A.a
[       OK ] A.a (0 ms)
[ RUN      ] A.b
a.cpp:12: Failure
Value of: x

[  FAILED  ] A.b (3 ms)
[----------] 1 test from A (3 ms total)

[==========] 2 tests from 1 test suite ran. (3 ms total)
[  PASSED  ] 1 test.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.b

 1 FAILED TEST
"""
        self.assertEqual(["[ RUN      ] A.b", "a.cpp:12: Failure", "Value of: x", "[  FAILED  ] A.b (3 ms)",
                          "[  FAILED  ] A.b"], run.gist(said))

    def test_the_gist_of_a_long_output_also_shows_where_the_failure_begins(self):
        noise = [f"line {number}" for number in range(100)]
        for begins in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "WARNING: ThreadSanitizer: data race",
                       "a.cpp:3:7: error: expected ';'", "a.cpp:3: Failure", "FAIL: test_x (a.A)",
                       "FAILED: [code=1] a.cpp.o"):
            with self.subTest(begins):
                found = run.gist("\n".join([*noise, begins, *noise]))
                self.assertEqual([begins, *noise[:8], "...", *noise[-5:]], found)
        self.assertEqual(noise[-15:], run.gist("\n".join(noise)))
        self.assertEqual([200, 200], [len(line) for line in run.gist(f"{'x' * 200}\n{'y' * 201}")])
        self.assertEqual([], run.gist(""))

    def test_below_the_table_some_failures_of_each_stage_say_what_they_printed(self):
        def failing(name, number):
            failures = [run.Failure(f"{name}{each}", f"output of {name}{each}") for each in range(number)]
            return stages.Stage("", lambda only: run.Count(failed=number, failures=failures))
        said = io.StringIO()
        with mock.patch.dict(stages.STAGES, {"x": failing("x", 20), "y": failing("y", 2)}), \
                contextlib.redirect_stdout(said):
            stages.run(["x", "y"])
        table, shown = said.getvalue().split("\nall ")
        self.assertNotIn("output of", table)
        self.assertEqual([f"output of {name}" for name in
                          ("x0", "y0", "x1", "y1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9")],
                         re.findall("output of .*", shown))
        self.assertIn("\nx: x0\n  output of x0\n", shown)
        self.assertRegex(shown, "(?s)and 10 more, whose output is in build/logs\n\nfailed in x: x0, .*\nfailed in y: y0, y1\n"
                                r"0 passed, 22 failed\n\Z")

    def test_a_step_that_fails_is_a_failure_with_its_output(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "LOGS", Path(folder)), \
                mock.patch.object(run, "ROOT", Path(folder)), contextlib.redirect_stdout(io.StringIO()):
            self.assertIs(True, run.quietly("good", ["true"], "good"))
            bad = run.quietly("bad", ["sh", "-c", "echo why; exit 1"], "bad")
            self.assertFalse(bad)
            self.assertEqual(run.Failure("bad", "why\n"), bad)
            self.assertEqual([bad], run.one(bad).failures)
            script = run.run_script("script", ["sh", "-c", "echo 3 passed, 0 failed; exit 1"], "script")
        self.assertEqual((run.Count(3, 1), ["script"]), (script, [each.name for each in script.failures]))

    def test_a_case_of_the_python_package_that_failed_has_its_own_output(self):
        rule, line = "=" * 70, "-" * 70
        text = f"{rule}\nFAIL: test_a (a.A)\n{line}\nwhy a\n\n{rule}\nERROR: test_b (a.A)\n{line}\nwhy b\n\n{line}\nRan 5 tests in 1 s\n"
        with mock.patch.object(python_package, "quietly", return_value=run.Failure("tests")), \
                mock.patch.object(python_package, "read_log", return_value=text):
            count = python_package.run_tests("3.11", "python3", {})
        self.assertEqual(run.Count(3, 2), count)
        self.assertEqual([("test_a", "why a"), ("test_b", "why b")],
                         [(each.name, run.gist(each.output)[-1]) for each in count.failures])

    def test_a_preset_that_does_not_build_names_the_step(self):
        step = run.Failure("build", "a.cpp:1: error: no")
        with mock.patch.object(run, "configure", return_value=True), mock.patch.object(run, "build", return_value=step):
            count = run.run_workflow("dev")
        self.assertEqual((run.Count(failed=1), [step]), (count, count.failures))


class Presets(unittest.TestCase):
    def setUp(self):
        presets = json.loads((tree.ROOT / "CMakePresets.json").read_text())
        self.named = {kind: {each["name"] for each in presets[f"{kind}Presets"] if not each.get("hidden")}
                      for kind in ("configure", "build", "test")}
        self.workflows = {each["name"]: [(step["type"], step["name"]) for step in each["steps"]]
                          for each in presets["workflowPresets"]}

    def test_a_preset_that_is_built_has_a_stage_and_its_steps_exist(self):
        known = {*stages.STAGES, *compilers.PRESETS, *stages.BUILDS, *stages.HOSTED, "windows-win32", "single-header",
                 "clang-tsan"}
        for name in self.named["build"] | self.named["test"]:
            self.assertIn(name, known)
            for kind, step in run.steps_of(name):
                self.assertIn(step, self.named[kind], name)

    def test_a_stage_does_what_the_workflow_preset_of_its_name_does(self):
        for name, steps in self.workflows.items():
            self.assertEqual(steps, run.steps_of(name))

    def test_the_stage_of_each_preset_runs_all_of_its_steps(self):
        self.assertEqual([("configure", "dev"), ("test", "consumer")], run.steps_of("consumer"))
        self.assertEqual([("configure", "dev"), ("build", "dev"), ("test", "delays")], run.steps_of("delays"))
        for name in ("models", "slow-models", "long-models"):  # and no more of `release` than the models
            self.assertEqual([("configure", "release"), ("build", name), ("test", name)], run.steps_of(name))
        self.assertEqual([("configure", "arm"), ("build", "arm"), ("test", "arm")], run.steps_of("arm"))
        self.assertEqual([("configure", "windows-lab"), ("build", "windows-lab")], run.steps_of("windows-lab"))


class HostedWorkflow(unittest.TestCase):
    """.github/workflows/ci.yml, which nothing here can run, runs what this tree has."""

    def setUp(self):
        self.text = (tree.ROOT / ".github" / "workflows" / "ci.yml").read_text()

    def names(self, command, key):
        """The names that this command is given, those of the matrix included."""
        given = re.findall(rf"{re.escape(command)} (\$\{{\{{ matrix\.{key} \}}\}}|\S+)$", self.text, re.MULTILINE)
        lists = re.findall(rf"^ +{key}: \[(.*)\]$", self.text, re.MULTILINE)
        listed = [name for line in lists for name in line.split(", ")]
        for lines in re.findall(rf"^ +{key}:\n((?: +- [\w.-]+\n)+)", self.text, re.MULTILINE):
            listed += re.findall(r"- (\S+)", lines)
        return [name for each in given for name in (listed if each.startswith("$") else [each])]

    def test_every_stage_is_run_once_but_the_one_that_is_a_part_of_others(self):
        self.assertEqual(sorted({*stages.STAGES} - {"quick"}), sorted(self.names("./dev test", "stage")))

    def test_every_workflow_preset_exists(self):
        self.assertEqual({*stages.HOSTED}, {*self.names("cmake --workflow --preset", "preset")})

    def test_a_step_without_a_name_is_one_of_these(self):
        for command in re.findall(r"^ +- run: (.*)$", self.text, re.MULTILINE):
            self.assertRegex(command, r"^(\./dev test|cmake --workflow --preset) ")


class Versions(unittest.TestCase):
    def test_every_package_has_the_version_of_the_library(self):
        version = packages.version()
        minor = version.rpartition(".")[0]
        for name, text in (("vcpkg/ports/tocsin/vcpkg.json", f'"version-semver": "{version}"'),
                           ("meson/tocsin.wrap", f"directory = tocsin-{version}\n"),
                           ("debian/changelog", f"tocsin ({version}-"),
                           ("debian/control", f"Package: libtocsin{minor}\n"),
                           (f"debian/libtocsin{minor}.symbols", f"libtocsin.so.{minor} libtocsin{minor} "),
                           (f"debian/libtocsin{minor}.install", "libtocsin.so.*")):
            self.assertIn(text, (packages.PACKAGING / name).read_text(), name)


class MovedTree(unittest.TestCase):
    def commands(self, home):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "BUILD", Path(folder)), \
                mock.patch.object(run, "quietly") as quietly, contextlib.redirect_stdout(io.StringIO()):
            (Path(folder) / "dev").mkdir()
            (Path(folder) / "dev" / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
            run.configure("dev")
            return quietly.call_args[0][1]

    def test_it_is_configured_anew_and_no_other_is(self):
        self.assertEqual(["cmake", "--preset", "dev", "--fresh"], self.commands("/elsewhere"))
        self.assertEqual(["cmake", "--preset", "dev"], self.commands(tree.ROOT))


class OldGlibc(unittest.TestCase):
    def test_the_libraries_of_a_pkg_config_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tocsin.pc"
            path.write_text("Cflags: -pthread\nLibs: -L${libdir} -ltocsin -pthread -ldl\n")
            self.assertEqual({"pthread", "dl"}, old_glibc.libraries_of(path))


class Lab(unittest.TestCase):
    def test_it_replaces_dev_so_that_ctrl_c_reaches_it_alone(self):
        with mock.patch.object(verbs, "require_writable"), mock.patch.object(verbs, "build_workers", lambda _: True), \
                mock.patch.object(needs, "python_with", lambda _: Path("python")), \
                mock.patch.object(os, "execv") as execv:
            verbs.lab(["--whole"])
        execv.assert_called_once_with(Path("python"), ["python", str(tree.LAB / "run.py"), "--whole"])

    def test_without_arguments_it_builds_only_what_it_measures(self):
        with mock.patch.object(verbs, "require_writable"), mock.patch.object(verbs, "build_workers") as build, \
                mock.patch.object(verbs, "build_answers", return_value=False) as answers, \
                mock.patch.object(needs, "python_with", lambda _: Path("python")):
            self.assertEqual(1, verbs.lab([]))
        build.assert_not_called()
        answers.assert_called_once_with()

    def test_it_does_not_build_workers_that_are_named(self):
        with mock.patch.object(verbs, "require_writable"), mock.patch.object(verbs, "build_workers") as build, \
                mock.patch.object(needs, "python_with", lambda _: Path("python")), mock.patch.object(os, "execv"):
            verbs.lab(["--workers", "elsewhere"])
        build.assert_not_called()


class Needs(unittest.TestCase):
    def test_what_is_missing_is_named_where_nothing_may_be_installed(self):
        missing = needs.Need("a thing", "its-package", lambda: False)
        said = io.StringIO()
        with mock.patch.object(needs, "may_install", lambda: False), contextlib.redirect_stderr(said):
            with self.assertRaises(tree.Refusal):
                needs.provide([missing])
            needs.provide([missing], optional=True)
        self.assertIn("missing: a thing (in Debian: its-package)", said.getvalue())

    def provided(self, packages_of_the_system, optional):
        """What is installed of two packages, where the system has some of them."""
        installed = []

        def apt_get(command, **_):
            packages = [each for each in command if each.startswith("package-")]
            has_all = set(packages) <= set(packages_of_the_system)
            installed.extend(packages if has_all else [])
            return subprocess.CompletedProcess(command, 0 if has_all else 100, "no such package")

        wanted = [needs.Need(name, name, lambda: False) for name in ("package-a", "package-b")]
        with mock.patch.object(needs, "may_install", lambda: True), mock.patch.object(subprocess, "run", apt_get), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            needs.provide(wanted, optional)
        return installed, said.getvalue()

    def test_what_is_optional_is_installed_although_the_system_lacks_something_else(self):
        self.assertEqual(self.provided(["package-a", "package-b"], True), (["package-a", "package-b"], ""))
        self.assertEqual(self.provided(["package-b"], True), (["package-b"], "not installed: package-a\n"))
        with self.assertRaises(tree.Refusal):
            self.provided(["package-b"], False)

    def test_a_package_that_the_system_does_not_have_is_named(self):
        said = ("Reading package lists...\nE: Unable to locate package clang-16\n"
                "E: Package 'libc++-16-dev' has no installation candidate\n")
        with mock.patch.object(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 100, said)):
            self.assertEqual("this system has no package clang-16, libc++-16-dev", needs.apt_get("install", "clang-16"))

    def test_the_tests_of_debuggers_and_tracers_get_their_programs(self):
        for stage, programs in {"dev": {"gdb"}, "diagnosis": {"gdb", "bpftrace", "linux-perf", "chromium"}}.items():
            wanted = []
            with mock.patch.object(needs, "provide", lambda some, optional: wanted.extend(some)), \
                    mock.patch.object(stages, "run_workflow", lambda name, only: run.Count(passed=1)):
                stages.STAGES[stage].run("some cases")
            self.assertLessEqual(programs, {need.package for need in wanted})

    def test_a_refusal_is_one_sentence_without_a_traceback(self):
        said = io.StringIO()
        with mock.patch.object(verbs, "VERBS", {"test": mock.Mock(side_effect=tree.Refusal("no network"))}), \
                contextlib.redirect_stderr(said):
            self.assertEqual(2, verbs.main(["test"]))
        self.assertEqual("dev: no network\n", said.getvalue())


class Distributions(unittest.TestCase):
    def test_what_ctest_skipped_has_not_passed(self):
        text = ("98% tests passed, 1 tests failed out of 5\n\nThe following tests did not run:\n\t2 - a.B (Skipped)\n"
                "\t4 - c.D<e, f> (Skipped)\n\nThe following tests FAILED:\n\t3 - g.H (Failed) unit\n")
        self.assertEqual(distributions.ctest_count(text), run.Count(2, 1, 2))

    def test_a_program_that_never_counted_has_failed(self):
        self.assertEqual(distributions.ctest_count("ninja: build stopped"), run.Count(failed=1))

    def test_the_suites_of_a_system_are_all_unit_internal_and_stress_tests(self):
        [labels] = re.findall("-L '(.*?)'", distributions.SUITE_TESTS)
        for label in ("unit", "slow_unit", "internal", "slow_internal", "stress"):
            self.assertRegex(label, labels)
        self.assertNotRegex("model", labels)

    def test_a_file_that_the_tree_no_longer_has_goes_from_the_copy_in_a_system(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "srv" / "tree"
            for name in ("build/built", "docs/moved.md", "old"):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).touch()
            distributions.copy_tree(copy)
            self.assertTrue((copy / "build" / "built").exists())
            self.assertFalse((copy / "docs" / "moved.md").exists() or (copy / "old").exists())
            self.assertEqual((tree.ROOT / "dev").read_bytes(), (copy / "dev").read_bytes())

    def test_the_table_has_what_passed_last_with_its_day_and_versions(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(distributions, "PAGE", Path(folder) / "page.md") as page:
            page.write_text(f"before\n{distributions.BEGIN}{distributions.END}after\n")

            def runs(day, versions, **steps):
                system = distributions.System("debian-13", "trixie")
                for step, count in steps.items():
                    system.note_count(step, count)
                with mock.patch.object(distributions, "versions", return_value=versions), \
                        mock.patch.object(distributions.time, "strftime", return_value=day):
                    distributions.note_result(system)
            runs("2030-01-01", "GCC 98", one=run.Count(3), two=run.Count(4, 0, 1), three=run.Count(1), four=run.Count(7))
            runs("2030-01-02", "GCC 98", two=run.Count(4, 1), three=run.Count(2))
            runs("2030-01-02", "GCC 99", four=run.Count(8))
            text = page.read_text()
        self.assertEqual(f"before\n{distributions.BEGIN}\n"
                         "| system, day | versions | passed |\n| --- | --- | --- |\n"
                         "| debian-13, 2030-01-01 | GCC 98 | one: 3 passed, 0 failed |\n"
                         "| debian-13, 2030-01-02 | GCC 98 | three: 2 passed, 0 failed |\n"
                         "| debian-13, 2030-01-02 | GCC 99 | four: 8 passed, 0 failed |\n"
                         f"\n{distributions.END}after\n", text)

    def test_a_table_that_is_read_and_written_again_is_the_same(self):
        written = distributions.PAGE.read_text().split(distributions.BEGIN)[1].split(distributions.END)[0]
        self.assertEqual(written.strip(), distributions.table(distributions.read(written)).strip())

    def test_the_table_has_the_compilers_that_built_in_the_same_standards_together(self):
        passed = {"clang++-18 C++20": "18.1.8", "g++-9 C++20": "9.1.0", "one": "3", "g++-14 C++20": "14.2.0",
                  "g++-14 C++26": "14.2.0", "clang++-18 C++26": "18.1.8"}
        self.assertEqual({"one": "3", "g++-9 (9.1.0)": "C++20", "g++-14 (14.2.0), clang++-18 (18.1.8)": "C++20, C++26"},
                         distributions.compilers_together(passed))

    def test_a_compiler_narrows_the_matrix_and_with_R_the_suites(self):
        names = ("debian-12", "debian-13")
        self.assertEqual({name: ["matrix"] for name in names}, distributions.plan(names, None, True, ["g++-14"]))
        self.assertEqual({"debian-13": ["matrix"]}, distributions.plan(names, "debian-13 matrix", True, ["g++-14"]))
        self.assertEqual({"debian-12": ["suites-gcc", "suites-clang"]},
                         distributions.plan(names, "12 suites", True, ["g++-14"]))
        self.assertEqual({"debian-13": ["tsan"]}, distributions.plan(names, "13 tsan", True, []))

    def test_a_step_that_does_not_exist_is_refused_with_those_that_do(self):
        for chosen, step in ((["g++-14"], "tsan"), ([], "matrx")):
            with self.assertRaises(tree.Refusal) as refused:
                distributions.plan(["debian-12", "debian-13"], step, True, chosen)
            self.assertIn(f"-R `{step}` fits no SYSTEM STEP; systems: debian-12, debian-13; steps: ",
                          str(refused.exception))
            self.assertIn("matrix", str(refused.exception))

    def test_a_compiler_that_no_system_offers_is_refused_with_those_that_are(self):
        offered = {"debian-12": {"g++": [9, 12], "clang++": [16]}, "debian-13": {"g++": [14], "clang++": [16, 18]}}
        systems = [distributions.System(name, "") for name in offered]
        said = io.StringIO()
        with mock.patch.object(distributions.System, "offered", lambda self: offered[self.name]), \
                contextlib.redirect_stdout(said):
            distributions.check_chosen(["clang++-18"], systems)
            self.assertEqual(" debian-12 does not offer clang++-18\n", said.getvalue())
            self.assertEqual({"g++": [], "clang++": [18]},
                             distributions.System("debian-13", "", ("clang++-18",)).compilers())
            with self.assertRaises(tree.Refusal) as refused:
                distributions.check_chosen(["clang++-20"], systems)
        self.assertRegex(str(refused.exception), "^unknown compiler `clang\\+\\+-20`; .*"
                         "valid: g\\+\\+-9, g\\+\\+-12, g\\+\\+-14, clang\\+\\+-16, clang\\+\\+-18$")

    def test_the_matrix_takes_the_chosen_compiler_alone_in_every_standard(self):
        built = []
        system = distributions.System("debian-13", "", ("clang++-18",))
        with mock.patch.object(system, "offered", lambda: {"g++": [14], "clang++": [17, 18]}), \
                mock.patch.object(system, "install", lambda *names: built.append(names) or True), \
                mock.patch.object(system, "says", lambda _: "18.1.8"), \
                mock.patch.object(distributions, "build_one", lambda _, *what: built.append(what) or True):
            self.assertEqual(run.Count(3), distributions.matrix(system, True))
        self.assertEqual([("clang-18",), ("clang++-18", 20), ("clang++-18", 23), ("clang++-18", 26)], built)
        self.assertEqual("18.1.8", system.passed["clang++-18 C++26"])

    def test_a_compiler_is_named_as_it_is_called_and_to_a_stage_that_has_several(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(2, verbs.main(["test", "distributions", "--compiler", "gcc-14"]))
            self.assertEqual(2, verbs.main(["test", "dev", "--compiler", "g++-14"]))
        self.assertEqual("dev: test: --compiler takes a name like g++-14 or clang++-18, not `gcc-14`\n"
                         "dev: test: the stage `dev` has no compilers to choose from by --compiler\n", said.getvalue())


class Compilers(unittest.TestCase):
    """The stage `compilers` takes what the system offers."""

    def plan(self, *packages):
        with mock.patch.object(needs, "packages_offered", lambda: packages), \
                mock.patch.object(needs, "on_path", lambda program: lambda: False), \
                mock.patch.object(Path, "is_dir", lambda path: False), \
                mock.patch.object(Path, "is_file", lambda path: False):
            rows, lacking = compilers.plan()
        return [(preset, *definitions.values()) for preset, _, definitions in rows], lacking

    def test_it_takes_the_oldest_and_the_newest(self):
        rows, lacking = self.plan("clang-16", "clang-17", "clang-19", "libc++-19-dev", "libc++abi-19-dev")
        self.assertEqual([("gcc-cxx23",), ("gcc-bare",), ("clang-oldest", "clang++-16"),
                          ("clang-newest-cxx23", "clang++-19"), ("libcxx", "clang++-19"), ("clang-16-libcxx",)], rows)
        self.assertEqual([], lacking)
        self.assertEqual(set(compilers.PRESETS), {row[0] for row in rows})

    def test_it_says_what_the_system_lacks(self):
        rows, lacking = self.plan("clang-17", "clang-18", "clang-22", "libc++-18-dev", "libc++abi-18-dev",
                                  "libc++-17-dev", "libc++abi-17-dev")
        self.assertEqual([("clang-oldest", "clang++-17"), ("clang-newest-cxx23", "clang++-22"),
                          ("libcxx", "clang++-18")], rows[2:])
        self.assertEqual(2, len(lacking))
        self.assertEqual(([("gcc-cxx23",), ("gcc-bare",)], ["no clang from 16 on"]), self.plan("clang-15"))


if __name__ == "__main__":
    unittest.main()
