"""What the promised settings put back, and what they leave out."""

import pytest
from scrapy.settings import BaseSettings

from crawlerproject.config.promised_settings import leave_out

SERVER = "crawlerproject.extensions.status_server.StatusServer"
LISTENER = "crawlerproject.extensions.websub_listener.WebSubListener"


@pytest.mark.parametrize(
    ("watch", "websub", "left"),
    [(0, 0, set()), ("0", "", set()), (6080, "0", {SERVER}), ("6080", 6081, {SERVER, LISTENER}), (None, 1, {LISTENER})],
)
def test_what_has_no_port_is_left_out(watch: object, websub: object, left: set[str]) -> None:
    """Scrapy would import it, and with it Twisted's web server; others stay."""
    given = {"EXTENSIONS": {SERVER: 520, LISTENER: 530, "other.Extension": 1, "off.Extension": None}}
    settings = BaseSettings({**given, "WATCH_PORT": watch, "WEBSUB_PORT": websub})

    leave_out(settings)

    assert set(settings["EXTENSIONS"]) == left | {"other.Extension"}
