#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the defects of tests/model/mutants.toml and generated.toml, one at a time, and shows that the models find
each.

    tools/mutants.py --build build/release [--only TEXT] [--shard 2/5] [--jobs N] [--table build/mutants.md]

A mutant is the library with one piece of its code replaced, compiled over the explorer and linked with the model test
that it names. It is killed when that test fails. A mutant that survives shows a missing test or a strength that nobody
needs; either way the run fails. The explorer is taken from the build folder.
"""

import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

from shards import Shard, shard

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "tests" / "model"
FLAGS = ["-std=c++20", "-O1", "-w", "-DTOCSIN_MODEL=1", "-DTOCSIN_FUTEX_CHOSEN=model_futex",
         "-DTOCSIN_POLLER_CHOSEN=model_poller", "-DTOCSIN_CHECKED=1",
         "-DTOCSIN_RELAY_ABOVE=1", "-DTOCSIN_RELAY_WAKES=1", "-DTOCSIN_TURN_WAKES=1", "-DTOCSIN_LOOKS_PER_LOCK=1",
         "-DTOCSIN_WAITS_PER_LOOK=2", "-DTOCSIN_WAITERS_PER_BATCH=2",
         "-DTOCSIN_SLOTS_OF_SHARED_SOURCES=3"]
SECONDS = 300


def code(text):
    """A pattern for this code, however its lines are broken and commented."""
    words = re.sub(r"//[^\n]*", "", text).split()
    return re.compile(r"(?:\s|//[^\n]*\n)+".join(map(re.escape, words)))


def selects(run):
    """Whether a model test has a case that its filter selects; a case with a parameter ends in /N."""
    test, _, patterns = run.partition(":")
    cases = re.findall(r"^(?:MODEL_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)[,)]", (MODEL / f"{test}.cpp").read_text(),
                       re.MULTILINE)
    return any(fnmatch.fnmatchcase(f"{suite}.{case}", re.sub(r"/\d+$", "", pattern))
               for suite, case in cases for pattern in patterns.split(":"))


def toml(name):
    return tomllib.loads((MODEL / name).read_text())


# In a mutant's text: a piece of code that is deleted, replaced by another, or added.
CHANGE = re.compile(r"\[-(.*?)-\](?:\{\+(.*?)\+\})?|\{\+(.*?)\+\}", re.DOTALL)
RUN = re.compile(r"(\w+)(?: with (\d+) buckets)?(:.*)")


def mutants_of(tables):
    """The mutants of a file: FILE, then the run, then the proof; then named texts, or a list of texts."""
    for file, runs in tables.items():
        for run, proofs in runs.items() if file != "not_planted" else ():
            test, buckets, cases = RUN.fullmatch(run).groups()
            for proof, texts in proofs.items():
                named = texts.items() if isinstance(texts, dict) else ((f"`{text}` ({run})", text) for text in texts)
                for name, text in named:
                    yield {"name": name, "proof": proof, "file": file, "run": test + cases, "buckets": int(buckets or 1),
                           "old": CHANGE.sub(lambda change: change[1] or "", text),
                           "new": CHANGE.sub(lambda change: change[2] or change[3] or "", text)}


# What an operator changes: an order between threads, or a fence. (A signal fence orders nothing between threads.)
ORDER = re.compile(r"(?<!atomic_signal_fence\(std::)\bmemory_order_(?:acquire|release|acq_rel|seq_cst)\b"
                   r"|(?<!void )\bfull_fence\(\)")
COMMENT = re.compile(r"//[^\n]*")


def places(pattern, text):
    return [found.span() for found in pattern.finditer(text)]


def not_planted(mutants):
    """FILE:LINE of each order and fence that the models compile and that no mutant changes."""
    reasons = toml("generated.toml")["not_planted"]
    files = {mutant["file"] for mutant in mutants}
    files.update(path.relative_to(ROOT).as_posix() for part in ("include", "src") for path in (ROOT / part).rglob("*.?pp")
                 if is_modelled(path) and "platform" not in path.parts)
    for file in sorted(file for file in files if not is_of_processes(ROOT / file)):
        text = (ROOT / file).read_text()
        changed = [code(mutant["old"]) for mutant in mutants if mutant["file"] == file
                   and ORDER.findall(COMMENT.sub("", mutant["old"])) != ORDER.findall(COMMENT.sub("", mutant["new"]))]
        changed += [code(each) for each in reasons.get(file, ())]
        planted = [place for pattern in changed for place in places(pattern, text)]
        for begin, _ in places(ORDER, COMMENT.sub(lambda comment: " " * len(comment[0]), text)):
            if not any(first <= begin < last for first, last in planted):
                yield f"{file}:{text.count(chr(10), 0, begin) + 1}"


def load():
    mutants = [*mutants_of(toml("mutants.toml")), *mutants_of(toml("generated.toml"))]
    for mutant in mutants:
        if not selects(mutant["run"]):
            sys.exit(f"mutants: '{mutant['name']}': {mutant['run']} selects no case")
        found = len(code(mutant["old"]).findall((ROOT / mutant["file"]).read_text()))
        if found != 1:
            sys.exit(f"mutants: '{mutant['name']}': its code occurs {found} times in {mutant['file']}, not once")
    return mutants


def compiler():
    return os.environ.get("CXX", "g++")


def compile_one(tree, source, out, buckets=1):
    """The object of a source of `tree`, a copy of the project's folders that the models use."""
    target = out / (source.as_posix().replace("/", "_") + ".o")
    include = [f"-I{tree / part}" for part in ("include", "src", "win32/src", "python/src", "tests/model")]
    bits = f"-DTOCSIN_BUCKET_BITS={buckets.bit_length() - 1}"
    subprocess.run([compiler(), *FLAGS, bits, *include, "-MMD", "-c", tree / source, "-o", target],
                   check=True, capture_output=True, text=True)
    return target


# What only calls the system, which the models do not have.
NOT_MODELLED = ("process.cpp", "signal.cpp", "library_thread.cpp", "shared_memory.cpp", "shared_memory.hpp")


def is_modelled(path):
    return path.name not in NOT_MODELLED


def is_of_processes(path):
    """What processes share. Its mutants take away what a killed thread needs; none of them weakens an order."""
    folder = path.parent.name
    return folder == "shared" or path.name.startswith("shared_") and folder in ("src", "tocsin", "detail")


def library_sources():
    found = [path for path in [*sorted((ROOT / "src").glob("*.cpp")), *sorted((ROOT / "src/core").rglob("*.cpp"))]
             if is_modelled(path)]
    support = [pathlib.Path("tests/model/support") / name for name in ("futex_model.cpp", "platform_model.cpp",
                                                                "shared_futex_model.cpp")]
    return [path.relative_to(ROOT) for path in found] + support


def objects_for(mutant, tree, out, unchanged):
    """A mutant needs new objects of the sources that include its file; one with more buckets needs all."""
    test = pathlib.Path("tests/model") / (mutant["run"].split(":")[0] + ".cpp")
    buckets = mutant["buckets"]

    def changed(source):
        return buckets != 1 or mutant["file"] in unchanged[source].with_suffix(".d").read_text()

    return [compile_one(tree, source, out, buckets) if changed(source) else unchanged[source]
            for source in [*library_sources(), test]]


def run_one(mutant, explorer, unchanged):
    """(killed, seconds, what killed it)"""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tocsin-mutant-") as folder:
        tree = pathlib.Path(folder)
        for part in ("include", "src", "win32/src", "python/src", "tests/model", "tests/support"):
            shutil.copytree(ROOT / part, tree / part)
        source = tree / mutant["file"]
        source.write_text(code(mutant["old"]).sub(lambda _: mutant["new"], source.read_text()))
        program = tree / "program"
        try:
            objects = objects_for(mutant, tree, tree, unchanged)
            subprocess.run([compiler(), *objects, explorer, "-lgtest", "-lgtest_main", "-lpthread", "-o", program],
                           check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            return False, time.monotonic() - started, "does not build: " + error.stderr[-2000:]
        try:
            result = subprocess.run([program, f"--gtest_filter={mutant['run'].split(':', 1)[1]}", "--gtest_fail_fast"],
                                    capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return False, time.monotonic() - started, f"ran for {SECONDS} s without a verdict"
        return result.returncode != 0, time.monotonic() - started, what_happened(result)


def what_happened(result):
    if "Running 0 tests" in result.stdout:
        return "no case has the name that it gives"
    if result.returncode == 0:
        return "nothing found it"
    failed = re.search(r"\[  FAILED  \] [\w/]+\.(\w+)", result.stdout)
    last = re.findall(r"\[ RUN      \] [\w/]+\.(\w+)", result.stdout)
    return failed.group(1) if failed else f"{last[-1]} (the program ended)" if last else "the program ended"


def write_table(path, rows):
    lines = ["# Mutants", "",
             "Each row names one defect that we planted in the sources, and the model test that finds it. Written by",
             "`tools/mutants.py`, which `./dev prove` runs; the texts are in",
             "tests/model/mutants.toml and generated.toml, the proofs in docs/proofs.md.", "",
             "| proof | planted defect | in | found by |", "| --- | --- | --- | --- |"]
    for mutant, (_, _, found_by) in rows:
        name = mutant["name"].replace("|", "\\|")
        lines.append(f"| {mutant['proof']} | {name} | {mutant['file']} | {found_by} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, required=True, help="a CMake build folder with the explorer")
    options.add_argument("--only", default="", help="mutants whose proof or name contains this")
    options.add_argument("--shard", type=shard, default=Shard(), metavar="I/N",
                         help="of the mutants chosen, only part I of N")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--table", type=pathlib.Path, help="write the table here when all mutants were planted and killed")
    given = options.parse_args()
    explorer = next(given.build.resolve().rglob("libtocsin_explorer.a"), None)
    if explorer is None:
        sys.exit(f"mutants: no libtocsin_explorer.a under {given.build}: build the model tests first")
    mutants = given.shard.of([mutant for mutant in load() if given.only in f"{mutant['proof']} {mutant['name']}"])
    if not mutants:
        sys.exit(f"mutants: none is called '{given.only}' in part {given.shard}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="tocsin-mutants-") as folder, \
            concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        tests = {pathlib.Path("tests/model") / (mutant["run"].split(":")[0] + ".cpp") for mutant in mutants}
        sources = [*library_sources(), *sorted(tests)]
        out = pathlib.Path(folder)
        unchanged = dict(zip(sources, pool.map(lambda source: compile_one(ROOT, source, out), sources)))
        for mutant, verdict in zip(mutants, pool.map(lambda each: run_one(each, explorer, unchanged), mutants)):
            killed, seconds, what = verdict
            print(f"{'killed' if killed else 'SURVIVED':8} {seconds:5.0f} s  {mutant['proof']}  {mutant['name']}: {what}", flush=True)
            rows.append((mutant, verdict))
    survivors = sum(not killed for _, (killed, _, _) in rows)
    if given.table and not survivors and not given.only and given.shard.is_all:
        write_table(given.table, rows)
    print(f"{len(rows) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
