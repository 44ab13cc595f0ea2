"""Decides whether the browser runs in Chromium's own sandbox: wherever the system lets it.

Playwright gives Chromium ``--no-sandbox`` unless it is asked for the sandbox. Whether the system allows one, only
Chromium finds out, as it starts: by user namespaces, or by a helper program that is root's.
"""

from __future__ import annotations

AUTO, REQUIRED = "auto", "required"
"""What RENDER_SANDBOX may be."""

# Playwright's words over Chromium's, and Chromium's own (content/browser/zygote_host/zygote_host_impl_linux.cc).
_REFUSED = ("sandboxing failed", "No usable sandbox", "setuid sandbox is not running as root")
_ROOT = "it runs as root, and Chromium then refuses its sandbox; start crawls that render as a user of their own"
_SYSTEM = (
    "the system refuses this user what it is made of; allow user namespaces (user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone, AppArmor, a container's seccomp profile)"
)


def hopeless(*, is_root: bool) -> str:
    """Why Chromium need not be tried with its sandbox; "" if it should be."""
    return _ROOT if is_root else ""


def refused_by(last_words: str) -> str:
    """Why there is none, if the words of a browser that did not start are about that; else ""."""
    return _SYSTEM if any(words in last_words for words in _REFUSED) else ""
