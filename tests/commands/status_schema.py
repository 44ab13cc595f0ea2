"""docs/status.schema.json, and what in an answer is not as it says: the part of JSON Schema that it uses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.web.running import PROJECT

SCHEMA: dict[str, Any] = json.loads((PROJECT / "docs" / "status.schema.json").read_text())
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
KNOWN = {"type", "const", "required", "properties", "additionalProperties", "items", "description", "$schema", "title"}


def mistakes(value: Any, schema: dict[str, Any], place: str = "$") -> Iterator[str]:
    """Where the value differs; a name that the schema does not know is a mistake too, so that it is written down."""
    assert schema.keys() <= KNOWN, place
    if "const" in schema and value != schema["const"]:
        yield f"{place} is not {schema['const']}"
    wanted = schema.get("type", [])
    names = [wanted] if isinstance(wanted, str) else wanted
    kinds = [kind for name in names for kind in TYPES[name]]
    if names and not any(type(value) is kind for kind in kinds):  # a bool is no number
        yield f"{place} is {value!r}, not {wanted}"
    if isinstance(value, dict):
        yield from (f"{place} has no {name}" for name in schema.get("required", []) if name not in value)
        rest = schema.get("additionalProperties", {} if "properties" not in schema else None)
        for name, inner in value.items():
            found = schema.get("properties", {}).get(name, rest)
            if found is None:
                yield f"{place}.{name} is not written down"
            else:
                yield from mistakes(inner, found, f"{place}.{name}")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from mistakes(inner, schema["items"], f"{place}[{number}]")
