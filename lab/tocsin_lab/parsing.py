# SPDX-License-Identifier: Apache-2.0
"""JSON at the border: read once into records, written back from them.

A record is a dataclass, and its fields say what the JSON must have. A field without a default is a required key.
`metadata={"json": ...}` gives the key where it can't be the field's name. Keys that no field wants are ignored.
A type with `from_json` and `to_json` has a form of its own.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Malformed(ValueError):
    """JSON that isn't what was expected. `path` leads to the part that is wrong."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason, self.path = reason, path

    def inside(self, part: str) -> Malformed:
        return Malformed(self.reason, f"{part}.{self.path}" if self.path else part)


def parse(kind: type[T], data: Any) -> T:
    """Malformed if the data doesn't fit."""
    if hasattr(kind, "from_json"):
        return kind.from_json(data)
    if dataclasses.is_dataclass(kind):
        return parse_record(kind, data)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):  # something or nothing
        return None if data is None else parse(inner[0], data)
    if origin in (list, tuple):
        return origin(parse_part(inner[0], one, str(index)) for index, one in enumerate(checked(list, data)))
    if origin is dict:
        return {name: parse_part(inner[1], one, name) for name, one in checked(dict, data).items()}
    return checked(kind, data)


def parse_record(kind: type[T], data: Any) -> T:
    given = checked(dict, data)
    values = {}
    for name, key, inner, required in fields_of(kind):
        if key in given:
            values[name] = parse_part(inner, given[key], key)
        elif required:
            raise Malformed(f"lacks {key}")
    return kind(**values)


def parse_part(kind: type[T], data: Any, part: str) -> T:
    try:
        return parse(kind, data)
    except Malformed as error:
        raise error.inside(part) from None


def checked(kind: type[T], data: Any) -> T:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise Malformed(f"expected {kind.__name__}, found {data!r:.60}")
    return data


@cache
def fields_of(kind: type) -> list[tuple[str, str, Any, bool]]:
    """Name, key in the JSON, type, and whether it is required."""
    hints = get_type_hints(kind)
    return [
        (
            one.name,
            one.metadata.get("json", one.name),
            hints[one.name],
            one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
        )
        for one in dataclasses.fields(kind)
    ]


def as_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if dataclasses.is_dataclass(value):
        return {key: as_json(getattr(value, name)) for name, key, _, _ in fields_of(type(value))}
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(one) for one in value]
    return value
