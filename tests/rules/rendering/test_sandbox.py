"""Whether Chromium runs in its sandbox."""

from __future__ import annotations

import pytest

from crawlerproject.rules.rendering.sandbox import hopeless, refused_by


def test_root_need_not_try() -> None:
    """Chromium refuses it to root, wherever it runs."""
    assert "root" in hopeless(is_root=True)
    assert hopeless(is_root=False) == ""


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("Target closed\nBrowser logs:\n\nChromium sandboxing failed!\n====", True),
        ("FATAL:zygote_host_impl_linux.cc(132)] No usable sandbox! If you are running on Ubuntu 23.10+", True),
        ("The setuid sandbox is not running as root. Common causes:", True),
        ("error while loading shared libraries: libnss3.so", False),
        ("", False),
    ],
)
def test_only_a_refused_sandbox_is_one(words: str, refused: bool) -> None:
    """A browser that dies of anything else is not started without its sandbox for that."""
    assert bool(refused_by(words)) is refused
