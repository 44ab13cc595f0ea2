"""The event of a start that was refused: no crawl is there to say more."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.hooks.delivery import TIMEOUT_SECONDS, deliver_all, hook_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def tell_refused(settings: BaseSettings, folder: Path, sentence: str) -> None:
    """Deliver it once, before the command ends; a hook that is itself what is wrong gets nothing."""
    try:
        hook = hook_of(
            settings["HOOK_COMMAND"], settings["HOOK_URL"], settings.getfloat("HOOK_TIMEOUT_SECONDS", TIMEOUT_SECONDS)
        )
    except ValueError:
        return
    if hook:
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        event = {"event": "refused", "reason": sentence, "crawl": str(folder.resolve()), "time": moment}
        deliver_all(hook, {**event, "machine": socket.gethostname(), "counts": {}}, time.sleep, ())
