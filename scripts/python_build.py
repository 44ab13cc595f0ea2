"""What ``make`` asks a Python before a new .venv is made of it: whether it fits, and whether it is an optimised build.

With ``fitting`` or ``optimised`` the exit status is the answer. Without, a line names an unoptimised build and its
price, and the exit status is 0.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig

# The pinned packages have wheels for these.
OLDEST, NEWEST = (3, 11), (3, 14)
# Both of CPython 3.11 on the same crawl (ours; 14 % a request of benchmarks.broad).
PRICE = "a page costs 10 to 17 % more CPU than with an optimised one"
# Distributions profile without saying so: Debian's rules run the same steps past this option.
DISTRIBUTION = "/usr"
OPTION = "--enable-optimizations"


def line(version: str, arguments: str | None, prefix: str) -> str:
    """The line for a Python of ``version`` that was configured with ``arguments``; empty if there is nothing to say.

    ``arguments`` is None where nothing is known of the build.
    """
    if arguments is None or OPTION in arguments or prefix == DISTRIBUTION:
        return ""
    return f"Python {version} in {prefix} was built without {OPTION}: {PRICE} (make PYTHON=… takes another)."


def fits() -> bool:
    """Whether an environment for the pinned packages can be made of this Python."""
    makes_environments = all(importlib.util.find_spec(each) for each in ("venv", "ensurepip"))
    return OLDEST <= sys.version_info[:2] <= NEWEST and makes_environments


def main(wanted: str) -> int:
    """Answer, or name the build."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    said = line(sys.version.split()[0], None if arguments is None else str(arguments), sys.base_prefix)
    if wanted:
        return 0 if fits() and not (said and wanted == "optimised") else 1
    if said:
        print(said, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:])))
