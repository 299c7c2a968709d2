"""The result file: everything that was measured, and on what. Figures in documents come from such files."""

from __future__ import annotations

import io
import json
import lzma
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

FORMAT = 1


class ResultError(Exception):
    """A file that is no result of this laboratory."""


def save(result: dict[str, Any], path: Path) -> None:
    write_whole(path, lambda file: write(result, file))


def write_whole(path: Path, write_to: Callable[[TextIO], object]) -> None:
    """Whole or not at all: written beside and renamed. OSError if that is not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            write_to(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write(result: dict[str, Any], file: TextIO) -> None:
    """One sample a line, so that the file can be read by people and compared by tools."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    file.write("{\n" + ",\n".join(parts) + "\n}\n")


def save_or_print(result: dict[str, Any], path: Path, out: TextIO, errors: TextIO) -> bool:
    """Measured data is never lost: what can't be written is printed, and if that fails, as when the output goes to the
    same full disk, where errors are. False then."""
    try:
        save(result, path)
        return True
    except OSError as error:
        print(f"lab: the result can't be written to {path}: {reason_of(error)}; here it is", file=errors)
    try:
        print_whole(result, out)
    except OSError as error:
        print(f"lab: nor can it be printed: {reason_of(error)}; here it is", file=errors)
        write(result, errors)
        errors.flush()
    return False


def print_whole(result: dict[str, Any], out: TextIO) -> None:
    """Also where Python's own buffers are switched off: then it would take a part that fits for the whole."""
    try:
        number = out.fileno()
    except io.UnsupportedOperation:  # no file of the system
        write(result, out)
        out.flush()
        return
    out.flush()
    with open(number, "w", encoding="utf-8", closefd=False) as file:
        write(result, file)


def reason_of(error: OSError) -> str:
    return error.strerror or str(error)


def why_not_writable(path: Path) -> str | None:
    """To be asked before anything is measured for that file. None: nothing is known to be in the way."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return "Is a directory" if path.is_dir() else None
    except OSError as error:
        return reason_of(error)


PARTS = ("format", "machine", "workers", "project", "plan", "contestants", "scenarios", "samples", "counts",
         "failures", "quietness", "interrupted", "rounds_finished")  # fmt: skip


def load(path: Path, *, any_format: bool = False) -> dict[str, Any]:
    """A file of JSON, or one compressed by xz. With `any_format` whatever has the parts of a result; it is for the caller
    to say that it is another."""
    try:
        result = json.loads(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_text())
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise ResultError(f"{path}: {error}") from None
    if not isinstance(result, dict) or (result.get("format") != FORMAT and not any_format):
        raise ResultError(f"{path} is no result of format {FORMAT}")
    if lacking := [part for part in PARTS if part not in result]:
        raise ResultError(f"{path} is no result: it lacks {', '.join(lacking)}")
    return result
