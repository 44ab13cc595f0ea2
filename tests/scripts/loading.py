"""Scripts that are no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.web.running import PROJECT


def loaded(name: str) -> ModuleType:
    """``scripts/NAME.py``, anew at each call."""
    spec = importlib.util.spec_from_file_location(f"{name}_script", PROJECT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the names of their fields' types
    spec.loader.exec_module(module)
    return module
