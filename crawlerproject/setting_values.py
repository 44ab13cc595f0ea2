"""Reads settings whose values may come from a command line, where everything is a string."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def list_of(settings: BaseSettings, name: str) -> list[str]:
    """A list of strings, also written as JSON (``["a", "b"]``) or with commas (``a,b``); OperatorError otherwise."""
    try:
        return list_of_value(settings.get(name))
    except ValueError as error:
        raise OperatorError(f"{name} is {error}") from None


def list_of_value(value: Any) -> list[str]:
    """The same of a setting's value; ValueError says what it is and how to write it."""
    if not value:
        return []
    parts = value
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part.strip() for part in value.split(",") if part.strip()]
        try:
            parts = json.loads(value)
        except ValueError:
            parts = None
    if not isinstance(parts, (list, tuple, set, frozenset)):
        raise ValueError(f'{value!r}; write it as ["a", "b"] or a,b.')
    return [str(part) for part in parts]
