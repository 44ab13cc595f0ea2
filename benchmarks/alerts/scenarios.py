"""The crawls that are watched: what befalls each, and which alerts it is to raise."""

from __future__ import annotations

import json
from typing import NamedTuple

from benchmarks.alerts import troubles
from benchmarks.alerts.crawl import Way
from benchmarks.alerts.troubles import Trouble
from benchmarks.alerts.web import CUT, HANG, Answers
from crawlerproject.settings import EXTENSIONS

_SPIDERS = {"SPIDER_MODULES": "crawlerproject.spiders,benchmarks.alerts.wrong"}
_TIMEOUTS = tuple(f"FETCH_{what}TIMEOUT_SECONDS" for what in ("", "CONNECT_", "FIRST_BYTE_"))
_PATIENT = dict.fromkeys(_TIMEOUTS, "600")  # longer than the trouble lasts: no attempt ends
_NO_END = {"OWN_ERRORS_MAX_IN_A_ROW": "100000"}


class Scenario(NamedTuple):
    """``alerts`` fire while the trouble is there and end when it is over."""

    cause: str  # for seen_firing.md
    alerts: tuple[str, ...]  # without the "Crawler" before each
    trouble: Trouble
    way: Way = Way()
    root: bool = False  # it mounts a file system or makes a control group

    def names(self) -> set[str]:
        """Of its alerts, as the rules have them."""
        return {f"Crawler{alert}" for alert in self.alerts}


def _extended(name: str) -> dict[str, str]:
    return {"EXTENSIONS": json.dumps(EXTENSIONS | {f"benchmarks.alerts.wrong.{name}": 990}), "PACE_IP_SECONDS": "0"}


SCENARIOS = {
    "fine": Scenario("nothing but a host that is paused", (), troubles.none),
    "failing": Scenario(
        "all pages answer 503", ("ServersFail", "MostHostsRest"), troubles.sites(Answers(page=503))
    ),
    "unwelcome": Scenario("all pages answer 403", ("NotWelcome",), troubles.sites(Answers(page=403))),
    "robots": Scenario(
        "every robots.txt answers 503", ("RobotsUnreachable",),
        troubles.sites(Answers(robots=503), from_the_start=True),
    ),
    "cut": Scenario("servers end connections without an answer", ("ManyErrors",), troubles.sites(Answers(page=CUT))),
    "hanging": Scenario(
        "servers take requests and answer nothing; timeouts of ten minutes", ("NotProgressing",),
        troubles.sites(Answers(page=HANG)), Way(_PATIENT),
    ),
    "nameless": Scenario(
        "the name server is silent about every other name", ("DnsFails",), troubles.silent_names,
        # That a name has no answer is known for a minute: at this rate the next are asked meanwhile.
        Way({"FETCH_DNS_TIMEOUT_SECONDS": "2", "FETCH_DNS_MAX_PER_SECOND": "1"}, sites=60),
    ),
    "stopped": Scenario("SIGSTOP of the crawl, watched at WATCH_PORT", ("Down",), troubles.stopped),
    "silent": Scenario(
        "SIGSTOP of the crawl, watched by `scrapy status --metrics`", ("Silent",), troubles.stopped,
        Way(metrics_command=True),
    ),
    "unwritten": Scenario(
        "the kernel refuses writes (RLIMIT_FSIZE)", ("CommitsFail", "CommitsLate", "Paused"), troubles.no_growth
    ),
    "redis": Scenario(
        "SIGSTOP of the Redis that has the frontier", ("CommitsFail", "CommitsLate"), troubles.stopped_redis,
        Way({"FLEET_WORKER": "w"}),
    ),
    "emptied": Scenario(
        "FLUSHALL in the Redis that has the frontier", ("RedisForgot",), troubles.emptied_redis,
        Way({"FLEET_WORKER": "w"}),
    ),
    "unowned": Scenario(
        "a worker over Redis is killed as often as it starts, with leases of five minutes", ("PartitionUnowned",),
        troubles.unowned_partitions, Way({"FLEET_LEASE_SECONDS": "300"}, workers=2),
    ),
    "full": Scenario(
        "a file of another program takes the disk's room", ("DiskNearlyFull", "Paused"), troubles.full_disk, root=True
    ),
    "filling": Scenario(
        "a file of another program grows by 4 MB a second", ("DiskFullInADay",), troubles.filling_disk, root=True
    ),
    "memory": Scenario(
        "a spider that keeps what it read, in a control group of 400 MB", ("MemoryNearLimit",), troubles.little_memory,
        Way(_SPIDERS, "hoarding"), root=True,
    ),
    "files": Scenario("RLIMIT_NOFILE just above what is open", ("FilesNearLimit",), troubles.few_files),
    "raising": Scenario(
        "a spider whose callback raises", ("OwnErrors",), troubles.wrong, Way(_SPIDERS | _NO_END, "raising")
    ),
    "holding": Scenario(
        "a spider whose callback takes half a second", ("LoopHeld",), troubles.wrong, Way(_SPIDERS, "holding")
    ),
    "hasty": Scenario(
        "an extension that changes the frontier's pauses to nothing (no cause from outside is known)",
        ("GuardRefused",), troubles.wrong, Way(_extended("Hasty")),
    ),
    "deaf": Scenario(
        "the same extension, which replaces the pace guard too (no cause from outside is known)",
        ("PauseTooShort",), troubles.wrong, Way(_extended("Deaf")),
    ),
    "browser": Scenario(
        "Chromium's processes of pages are killed as often as they start", ("RendersFail",), troubles.dying_browser,
        Way({"RENDER": "always", "SCOPE_MAX_DEPTH": "0"}, sites=300),  # renders come behind their hosts' other pages
    ),
    "refused": Scenario("S3 answers 403 AccessDenied", ("UploadRefused",), troubles.refusing_place),
    "held": Scenario("S3 takes connections and answers nothing", ("UploadStuck",), troubles.hanging_place),
    "unsent": Scenario("SIGSTOP of the process that uploads", ("UploadStuck",), troubles.stopped_upload),
    "lost": Scenario(
        "a file that is only in S3 is removed there; `scrapy upload --check`", ("UploadProblem",), troubles.lost_there
    ),
    "killed": Scenario(
        "a worker of a fleet is killed as often as it starts", ("WorkerGone",), troubles.dying_worker, Way(workers=2)
    ),
    "mute": Scenario(
        "SIGSTOP of a worker of a fleet", ("WorkerSilent",), troubles.stopped_worker, Way(workers=2)
    ),
}  # fmt: skip
"""By the crawl's name."""
