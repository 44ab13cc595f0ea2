"""Reads the pace and rest settings into the records that the rules want; a wrong value is one clear sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.config.settings_table import LARGEST, SETTINGS
from crawlerproject.errors import OperatorError
from crawlerproject.rules.politeness.backoff import RestLimits
from crawlerproject.rules.politeness.pace import PacePreset, pace_preset

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def preset_of(settings: BaseSettings) -> PacePreset:
    """``PACE_PRESET`` with the single numbers of ``PACE_*`` put in."""
    given = {name: number_of(settings, f"PACE_{name.upper()}") for name in PacePreset._fields}
    if (window := given["window"]) is not None:
        given["window"] = int(window)
    try:
        return pace_preset(settings.get("PACE_PRESET") or "default", given)
    except ValueError as error:
        raise OperatorError(str(error)) from None


def rest_limits_of(settings: BaseSettings) -> RestLimits:
    """``BACKOFF_*`` and ``RETRY_AFTER_MAX_SECONDS``."""
    names = ("BACKOFF_START_SECONDS", "BACKOFF_MAX_SECONDS", "RETRY_AFTER_MAX_SECONDS")
    return RestLimits(*(_seconds(settings, name) for name in names))


def ip_seconds_of(settings: BaseSettings) -> float | None:
    """``PACE_IP_SECONDS``; None when ``PACE_PER_IP`` is off."""
    if not settings.getbool("PACE_PER_IP"):
        return None
    return _seconds(settings, "PACE_IP_SECONDS")


def _seconds(settings: BaseSettings, name: str) -> float:
    """The setting, or its default when it is unset or empty."""
    seconds = number_of(settings, name)
    return float(SETTINGS[name].default) if seconds is None else seconds


def number_of(settings: BaseSettings, name: str) -> float | None:
    """A setting of 0 or more; None when it is unset or empty."""
    value = settings.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= LARGEST:
        raise OperatorError(f"{name} must be a number from 0 to {LARGEST:g}, not {value!r}")
    return number
