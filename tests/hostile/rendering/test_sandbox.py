"""Chromium where no user may make a namespace: what it says is recognised, so that the log can name the cure."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from crawlerproject.config.chromium import find_chromium
from crawlerproject.rules.rendering.browser_limits import refused_by

NOBODY = 65534
NO_NAMESPACE = 77  # the child's exit status
# A user namespace of root and nobody, which forbids further ones; in it a program of nobody's.
RUN = f"""
import ctypes, os, sys
told, tell = os.pipe()
ready, say_ready = os.pipe()
child = os.fork()
if not child:
    if ctypes.CDLL(None).unshare(0x10000000):
        os._exit({NO_NAMESPACE})
    os.write(tell, b"x")
    os.read(ready, 1)
    with open("/proc/sys/user/max_user_namespaces", "w") as most:
        most.write("0")
    os.setgroups([])
    os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
    os.execv(sys.argv[1], sys.argv[1:])
os.read(told, 1)
for kind in ("uid", "gid"):
    with open(f"/proc/{{child}}/{{kind}}_map", "w") as ids:
        ids.write("0 0 1\\n{NOBODY} {NOBODY} 1\\n")
os.write(say_ready, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may forbid namespaces")
@pytest.mark.skipif(Path("/usr/lib/chromium/chrome-sandbox").exists(), reason="Chromium has its helper program")
def test_the_words_of_a_chromium_without_one() -> None:
    """The real one, as an ordinary user without user namespaces, ends with words about its sandbox."""
    chromium = find_chromium("")
    assert chromium is not None
    command = [sys.executable, "-c", RUN, chromium, "--headless", "--disable-gpu", "about:blank"]
    with tempfile.TemporaryDirectory() as home:  # pytest's folders are closed to other users
        os.chown(home, NOBODY, NOBODY)
        environment = {**os.environ, "HOME": home, "TMPDIR": home, "XDG_CONFIG_HOME": home}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode == NO_NAMESPACE:
        pytest.skip("root may make no user namespace here")

    assert done.returncode != 0
    assert refused_by(done.stderr), done.stderr[-2000:]
