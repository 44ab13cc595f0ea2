"""What ``make fuzz`` runs: libFuzzer on the native reader's core, under AddressSanitizer and UBSan.

``python scripts/fuzz_native.py SECONDS`` starts from the kept corpus (tests/native/fuzz/corpus) and goes on from what
earlier runs found (build/fuzz/corpus). An input that breaks something lies in build/fuzz/found, and the exit status is
libFuzzer's. ``--keep`` writes the smallest inputs that reach all that is known back into the kept corpus.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "tests" / "native" / "fuzz"
KEPT = FUZZ / "corpus"
WORK = ROOT / "build" / "fuzz"
SANITIZERS = "-fsanitize=address,undefined,fuzzer-no-link"
# -O1: sanitizers see what a stronger optimiser would take away. Lexbor marks what of its pools is free if it is asked.
FLAGS = ("-g", "-O1", "-std=gnu11", "-DLEXBOR_STATIC", "-DLEXBOR_HAVE_ADDRESS_SANITIZER", "-fno-omit-frame-pointer")
# What nothing calls of lexbor needs parts of it that are not compiled.
LINK = ("-g", "-fsanitize=address,undefined,fuzzer", "-Wl,--unresolved-symbols=ignore-all")
STRICT = ("-fno-sanitize-recover=all",)
ALLOCATORS = tuple(f"-D{name}=fuzz_{name}" for name in ("malloc", "calloc", "realloc"))
MOST_BYTES = 256 * 1024  # of what is read in place; one run in eight goes up to the whole, rules/page/page.py
LARGE_BYTES = 2 * 1024 * 1024
LARGE_SHARE = 8
# Of the real time of one input, sanitizers and a busy machine included; what is heavier is a bomb, and is not parsed.
TIMEOUT_SECONDS = 60
MEMORY_MIB = 2048
FOUND = re.compile("[0-9a-f]{40}")  # libFuzzer's names
KEPT_BYTES = 768  # of an input: small ones reach nearly all that is reached, and a person can read them


def main(arguments: list[str]) -> int:
    """Build and run; the first failure's exit status."""
    if arguments == ["--keep"]:
        return keep(build())
    if len(arguments) != 1 or not arguments[0].isdigit():
        print("Usage: python scripts/fuzz_native.py SECONDS | --keep", file=sys.stderr)
        return 2
    seconds = int(arguments[0])
    program = build()
    large = seconds // LARGE_SHARE
    return run(program, seconds - large, MOST_BYTES) or run(program, large, LARGE_BYTES)


def build() -> Path:
    """Compile everything, also what has not changed: half a minute."""
    from crawlerproject.native import HERE
    from crawlerproject.native.build import LEXBOR, lexbor_units, own_sources

    objects = WORK / "objects"
    shutil.rmtree(objects, ignore_errors=True)
    for folder in (objects, WORK / "corpus", WORK / "found"):
        folder.mkdir(parents=True, exist_ok=True)
    made = []
    knowing = {"module.c", "capture.c", "census.c", "head.c", "links.c", "member.c"}  # Python
    ours = [path for path in own_sources() if path.name not in knowing]
    for source in (*ours, *lexbor_units(), FUZZ / "harness.c"):
        flags = [*FLAGS, SANITIZERS, *STRICT, f"-I{HERE}", f"-I{LEXBOR}", *(ALLOCATORS if source in ours else ())]
        made.append(str(objects / f"{source.stem}.o"))
        subprocess.run(["clang", *flags, "-c", str(source), "-o", made[-1]], check=True)
    program = WORK / "fuzz_native"
    subprocess.run(["clang", *LINK, *made, "-o", str(program)], check=True)
    return program


def run(program: Path, seconds: int, most_bytes: int) -> int:
    """Fuzz for so long; libFuzzer's exit status."""
    if not seconds:
        return 0
    return libfuzzer(
        program,
        [
            f"-max_total_time={seconds}", f"-max_len={most_bytes}", f"-timeout={TIMEOUT_SECONDS}",
            f"-rss_limit_mb={MEMORY_MIB}", f"-malloc_limit_mb={MEMORY_MIB}", f"-dict={FUZZ / 'html.dict'}",
            f"-artifact_prefix={WORK / 'found'}/", "-print_final_stats=1", "-len_control=100",
            str(WORK / "corpus"), str(KEPT),
        ],
    )  # fmt: skip


def keep(program: Path) -> int:
    """Merge what was found into the kept corpus, small inputs only."""
    merged, small = WORK / "merged", WORK / "small"
    for folder in (merged, small):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for path in (*KEPT.iterdir(), *(WORK / "corpus").iterdir()):
        by_hand = not FOUND.fullmatch(path.name)  # stays, and libFuzzer adds what it does not reach
        if by_hand or path.stat().st_size <= KEPT_BYTES:
            shutil.copyfile(path, (merged if by_hand else small) / path.name)
    status = libfuzzer(program, ["-set_cover_merge=1", f"-timeout={TIMEOUT_SECONDS}", str(merged), str(small)])
    if status == 0:
        shutil.rmtree(KEPT)
        shutil.move(merged, KEPT)
    return status


def libfuzzer(program: Path, arguments: list[str]) -> int:
    """Run it at the lowest priority, without leaks that only its end would show."""
    environment = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    return subprocess.run(["nice", "-n", "19", program, *arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
