"""Reads settings whose values may come from a command line, where everything is a string."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def list_of(settings: BaseSettings, name: str) -> list[str]:
    """A list of strings, also written as JSON (``["a", "b"]``) or with commas (``a,b``); OperatorError otherwise."""
    value = settings.get(name)
    if not value:
        return []
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part.strip() for part in value.split(",") if part.strip()]
        try:
            value = json.loads(value)
        except ValueError:
            raise OperatorError(f'{name} is {value!r}; write it as ["a", "b"] or a,b.') from None
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise OperatorError(f'{name} is {value!r}; write it as ["a", "b"] or a,b.')
    return [str(part) for part in value]
