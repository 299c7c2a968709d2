# SPDX-License-Identifier: Apache-2.0
"""The packages of the laboratory depend on each other in one direction only."""

import ast
import unittest
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "tocsin_lab"
# Each part, and those that it may import. A module of its own part is always allowed.
ALLOWED = {
    "errors": set(),
    "parsing": set(),
    "records": {"parsing"},
    "scenarios": {"records"},
    "defects": {"records"},
    "files": set(),
    "analyse": {"errors", "records", "scenarios"},
    "measure": {"errors", "parsing", "records", "defects", "files"},
    "present": {"errors", "parsing", "records", "scenarios", "defects", "files", "analyse"},
    "arguments": {"analyse", "defects", "errors", "files"},
}
ALLOWED["commands"] = set(ALLOWED)


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(FOLDER.rglob("*.py")):
        yield path.relative_to(FOLDER), ast.parse(path.read_text())


def imported(tree: ast.AST) -> Iterator[str]:
    """The parts of tocsin_lab that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tocsin_lab"):
            path = (node.module or "").split(".")[1:] or [one.name for one in node.names]
            yield path[0]


class LayerTest(unittest.TestCase):
    def test_every_import_points_down(self) -> None:
        for path, tree in modules():
            part = path.with_suffix("").parts[0]
            if part != "__init__":
                self.assertLessEqual(set(imported(tree)) - {part}, ALLOWED[part], path)

    def test_no_import_hides_in_a_function(self) -> None:
        for path, tree in modules():
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    hidden = [one for one in ast.walk(node) if isinstance(one, (ast.Import, ast.ImportFrom))]
                    self.assertEqual(hidden, [], f"{path}: {node.name}")

    def test_no_function_is_longer_than_a_screen(self) -> None:
        for path, tree in modules():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.assertLessEqual((node.end_lineno or 0) - node.lineno, 60, f"{path}: {node.name}")


if __name__ == "__main__":
    unittest.main()
