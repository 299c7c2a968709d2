# SPDX-License-Identifier: Apache-2.0
"""The result file: everything that was measured, and on what. Every figure in the docs comes from such a file."""

import io
import json
import lzma
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tocsin_lab.defects import Findings
from tocsin_lab.errors import LabError
from tocsin_lab.files import reason_of, write_whole
from tocsin_lab.parsing import Malformed, as_json, parse
from tocsin_lab.records import FORMAT, Result


class ResultError(LabError):
    """A file that is no result of this laboratory."""


def save(result: Result | Findings, path: Path) -> None:
    write_whole(path, lambda file: write(result, file))


def write(result: Result | Findings, file: TextIO) -> None:
    """Writes one sample a line, so that people can read the file and tools can compare it."""
    parts = []
    for key, value in as_json(result).items():
        if isinstance(value, list) and value:
            lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    file.write("{\n" + ",\n".join(parts) + "\n}\n")


def save_or_print(result: Result | Findings, path: Path, out: TextIO, errors: TextIO) -> bool:
    """Never loses measured data. False: the result couldn't be saved, so it was printed to `out`, or to `errors` if
    that failed as well, as it does when the output goes to the same full disk."""
    try:
        save(result, path)
        return True
    except OSError as error:
        with suppress(OSError):
            print(f"lab: the result can't be written to {path}: {reason_of(error)}; here it is", file=errors)
    try:
        print_whole(result, out)
    except OSError as error:
        print(f"lab: nor can it be printed: {reason_of(error)}; here it is", file=errors)
        write(result, errors)
        errors.flush()
    return False


def print_whole(result: Result | Findings, out: TextIO) -> None:
    """Prints all of it or raises, even with Python's own buffers switched off: then `out` itself would take a partial
    write for a whole one."""
    try:
        number = out.fileno()
    except io.UnsupportedOperation:  # no file of the system
        write(result, out)
        out.flush()
        return
    out.flush()
    with open(number, "w", encoding="utf-8", closefd=False) as file:
        write(result, file)


def load(path: Path, *, any_format: bool = False) -> Result:
    """With `any_format`, a result of another format is read if it can be; the caller must say so."""
    data = read_json(path)
    number = data.get("format") if isinstance(data, dict) else None
    if number is None or (number != FORMAT and not any_format):
        raise ResultError(f"{path} is no result of format {FORMAT}")
    try:
        return parse(Result, data)
    except Malformed as error:
        raise ResultError(f"{path} can't be read as a result of format {number}: {error}") from None


def read_json(path: Path) -> Any:
    """Reads JSON, or JSON compressed by xz."""
    try:
        return json.loads(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_text())
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise ResultError(f"{path}: {error}") from None
