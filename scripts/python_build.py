"""What ``make`` asks the Python of a new .venv: whether it was built without what CPython's own speed comes from.

Says so in one line; the exit status is 0.
"""

from __future__ import annotations

import sys
import sysconfig

# Both of CPython 3.11 on the same crawl: docs/performance.md.
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


if __name__ == "__main__":
    config = sysconfig.get_config_var("CONFIG_ARGS")
    said = line(sys.version.split()[0], None if config is None else str(config), sys.base_prefix)
    if said:
        print(said, file=sys.stderr)
