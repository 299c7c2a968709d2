# SPDX-License-Identifier: Apache-2.0
"""A page of the reference from the stub of the Python package: each public name with its types and its docstring, in
the stub's order. (python/tests/test_reference.py compares the docstrings with those of the module.)"""

from __future__ import annotations

import ast
from pathlib import Path

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def markdown(stub: Path, text: str) -> str:
    module = ast.parse(text)
    lines = [f"# The Python package {stub.parent.name}", "", "```python", f"import {stub.parent.name}", "```", "",
             docstring(module)]  # fmt: skip
    aliases = [ast.unparse(one) for one in module.body if is_alias(one)]
    for one in public(module):
        lines += described(one) if isinstance(one, ast.ClassDef) else entry(one.name, one, 2)
    if aliases:
        lines += ["## Types of arguments", "", "```python", *aliases, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def undocumented(stub: Path, text: str) -> list[str]:
    """The public names without a docstring. A special method needs none."""
    module = ast.parse(text)
    found = [] if ast.get_docstring(module) else ["the module"]
    for one in public(module):
        found += [] if ast.get_docstring(one) else [one.name]
        for each in members(one):
            found += [] if is_special(each) or ast.get_docstring(each) else [f"{one.name}.{each.name}"]
    return [f"{stub.name}: {each}" for each in found]


def public(module: ast.Module) -> list:
    """The classes and functions that __all__ names."""
    names = next((ast.literal_eval(one.value) for one in module.body
                  if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"), [])  # fmt: skip
    return [one for one in module.body if isinstance(one, (ast.ClassDef, *Function)) and one.name in names]


def members(of: ast.stmt) -> list:
    return [one for one in of.body if isinstance(one, Function)] if isinstance(of, ast.ClassDef) else []


def is_special(one) -> bool:
    return one.name.startswith("__")


def is_alias(one: ast.stmt) -> bool:
    """A private name that stands for types, such as _Source."""
    return isinstance(one, ast.Assign) and ast.unparse(one.value).startswith("Union[")


def described(one: ast.ClassDef) -> list[str]:
    bases = f"({', '.join(ast.unparse(base) for base in one.bases)})" if one.bases else ""
    special = [f"    {signature(each)}" for each in members(one) if is_special(each)]
    lines = [f"## {one.name}", "", "```python", f"class {one.name}{bases}:" if special else f"class {one.name}{bases}: ...",
             *special, "```", "", docstring(one)]  # fmt: skip
    for each in members(one):
        if not is_special(each):
            lines += entry(f"{one.name}.{each.name}", each, 3)
    return lines


def entry(name: str, declared, level: int) -> list[str]:
    return [f"{'#' * level} {name}", "", "```python", signature(declared), "```", "", docstring(declared)]


def signature(of) -> str:
    decorators = "".join(f"@{ast.unparse(each)}\n" for each in of.decorator_list)
    kind = "async def" if isinstance(of, ast.AsyncFunctionDef) else "def"
    returned = f" -> {ast.unparse(of.returns)}" if of.returns else ""
    return f"{decorators}{kind} {of.name}({ast.unparse(of.args)}){returned}: ..."


def docstring(of) -> str:
    text = ast.get_docstring(of)
    return f"{text}\n" if text else ""
