"""Every format of a crawl's folder, with its version, and what folders of earlier releases have otherwise.

The versions that ``format.json`` records are in ``stores/crawl_dir.py``. A part gets another number when an earlier
version would misread what is written, or when a migration leads there. Fields may be added without one: readers pass
over those that they do not know.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class How(StrEnum):
    """What becomes of what an earlier release wrote."""

    READ = "read as it is"  # nothing is rewritten for its own sake: a row gets the new form when it is written next
    MADE = "made at the start"  # it is derived from what is there; a start that is killed makes it again
    MIGRATED = "migrated"  # stores/migrations.py, once, and recorded when it is whole
    REFUSED = "refused"  # with one sentence


class Change(NamedTuple):
    """One thing that a release brought."""

    since: str  # the first release that writes the new form
    before: str  # what older folders have
    how: How
    by: str  # module:name, below crawlerproject, of what reads, makes, migrates or refuses it
    guard: str  # file::test, below tests, that holds it


class Part(NamedTuple):
    """One format."""

    name: str
    version: int
    what: str
    places: tuple[str, ...]  # attributes of CrawlDir
    constant: str = ""  # module:name that has the number in the part's own bytes; "": in format.json alone
    recorded: bool = False  # in format.json
    changes: tuple[Change, ...] = ()


_HOST = "frontier.hosts.host:Host.unpack"
_OLD_FOLDERS = "crawls/test_old_folders.py::test_a_folder_of_any_version_goes_on"

PARTS = (
    Part(
        "frontier", 2, "rows and tables of the frontier", ("frontier",), "stores.row_codec:FORMAT", recorded=True,
        changes=(
            Change("1.0.0", "format 1, of no release", How.REFUSED, "stores.rocks.rocks_tables:other_version",
                   "stores/rocks/test_rocks_tables.py::test_a_store_of_another_version_is_refused"),
            Change("1.1.0", "no list of hosts that are due", How.MADE, "frontier.hosts.on_disk:HostsOnDisk",
                   "frontier/hosts/test_on_disk.py::test_the_folder_of_an_older_version_is_crawled_on_and_looked_at"),
            Change("1.1.0", "no list of hubs, but subscriptions that they verified", How.READ,
                   "frontier.learned.subscriptions:Hubs",
                   "frontier/learned/test_subscriptions.py::test_a_hub_that_an_older_version_knew_is_proven"),
            Change("1.3.0", "requests to hubs without their form", How.READ,
                   "frontier.learned.subscriptions:Subscriptions.form",
                   "frontier/learned/test_subscriptions.py::test_a_feed_is_subscribed_to_once"),
            Change("1.3.0", "no table of messages between workers", How.MADE, "stores.rocks.rocks_tables:open_to_write",
                   "stores/rocks/test_messages.py::test_a_folder_without_the_table_gains_it"),
            Change("1.4.0", "messages in an outbox that was kept from start to start", How.READ,
                   "stores.rocks.rocks_store:RocksMessages",
                   "stores/rocks/test_messages.py::test_each_start_has_an_outbox_of_its_own"),
        ),
    ),
    Part(
        "host", 6, "a host's state, a row of the frontier", ("frontier",), "frontier.hosts.host:_VERSION",
        changes=(
            Change("1.1.0", "no last arrival", How.READ, _HOST,
                   "frontier/hosts/test_host.py::test_a_state_of_before_arrivals_were_kept"),
            Change("1.1.0", "no clock of the host's name", How.READ, _HOST,
                   "frontier/hosts/test_host.py::test_a_state_of_before_ports_shared_a_clock"),
            Change("1.1.0", "nothing of what the host has cost", How.READ, _HOST,
                   "frontier/hosts/test_host.py::test_a_state_of_before_pages_were_counted"),
            Change("1.1.0", "a pause that never ends, of a Crawl-delay", How.READ, _HOST,
                   "frontier/hosts/test_host.py::test_a_pause_of_an_earlier_release_that_never_ends"),
            Change("1.8.0", "no door for strangers, no host that is not there", How.READ, _HOST,
                   "frontier/hosts/test_host.py::test_a_state_of_before_doors_were_kept"),
        ),
    ),
    Part(
        "traps", 2, "what a host's templates have yielded, a fact of the frontier", ("frontier",),
        "rules.traps.template_yield:_FORMAT",
        changes=(
            Change("1.1.0", "counts without lists", How.READ, "rules.traps.template_yield:HostYields.unpack",
                   "rules/traps/test_template_yield.py::test_what_the_version_before_kept_is_read"),
            Change("1.1.0", "a fact for each port of a host", How.READ, "frontier.learned.models:TrapModel",
                   "frontier/learned/test_traps.py::test_a_port_that_an_older_version_knew_is_remembered"),
        ),
    ),
    Part(
        "strangers", 2, "links of strangers, a fact of the frontier", ("frontier",),
        "rules.traps.budgets:_FORMAT",
        changes=(
            Change("1.8.0", "shares without ports", How.READ, "rules.traps.budgets:ExternalBudgets.unpack",
                   "rules/traps/test_budgets.py::test_what_the_version_before_kept_is_read"),
        ),
    ),
    Part("requisites", 1, "what requisites a host names, a fact of the frontier", ("frontier",),
         "rules.traps.budgets:_REQUISITES_FORMAT"),
    Part(
        "revisits", 1, "a page's history, in its record", ("frontier",), "rules.revisits.history:_FORMAT",
        changes=(
            Change("1.7.0", "no history of a URL that has shown no page: no recrawl visits it", How.READ,
                   "frontier.learned.revisits:scored",
                   "frontier/learned/test_revisit_queue.py::test_pages_that_need_no_request_are_left_out"),
        ),
    ),
    Part("robots", 1, "a robots.txt as it was answered", ("frontier",), "rules.robots.policy:_RECORD_FORMAT"),
    Part(
        "redis", 3, "what many workers share, in Redis", (), "stores.redis.journals:FORMAT",
        changes=(
            Change("1.8.0", "the frontier in Redis itself", How.MADE, "stores.redis.format_two:rows",
                   "stores/redis/test_format_two.py::test_it_may_be_killed_anywhere"),
            Change("1.3.0", "sums of each worker alone", How.MADE, "stores.redis.membership:RedisQuotas.begin",
                   "stores/redis/test_membership.py::test_what_was_spent_before_counts"),
        ),
    ),
    Part("index", 1, "a line of the CDXJ index and its journal, a column of the Parquet one", ("index", "parquet"),
         recorded=True),
    Part(
        "log", 1, "a line of the request log, a column of its Parquet twins", ("log",), recorded=True,
        changes=(
            Change("1.0.0", "fewer columns, of no release", How.READ, "stores.logs.log_query:attempts",
                   "stores/logs/test_log_query.py::test_a_twin_of_an_older_version_is_read"),
        ),
    ),
    Part(
        "layout", 2, "which file lies where", ("warc", "torn", "formats"), recorded=True,
        changes=(
            Change("1.1.0", "tails that a crash left, among the files of the archive", How.MIGRATED,
                   "stores.migrations:MIGRATIONS",
                   "stores/test_migrations.py::test_a_kill_at_every_step"),
            Change("1.5.0", "nothing that says which version wrote here", How.MADE,
                   "stores.crawl_dir:stamp_formats", _OLD_FOLDERS),
        ),
    ),
    Part(
        "crawl file", 1, "seeds, scope and settings, in TOML", ("crawl_file",),
        changes=(
            Change("1.1.0", "none", How.MADE, "crawl.start.resumption:resume",
                   "crawls/operator/test_resume.py::test_a_folder_of_an_earlier_version_keeps_its_scope"),
            Change("1.3.0", "one in each worker's folder", How.MADE, "config.crawl_file:adopt_crawl_file",
                   "config/test_crawl_file.py::test_several_workers_have_one_file"),
            Change("1.1.0", "settings under their earlier names", How.READ, "config.old_settings:take_old_names",
                   "config/test_old_settings.py::test_a_renamed_setting_counts"),
        ),
    ),
    Part("fleet plan", 1, "which worker of one machine holds what", ("fleet_plan",), "stores.crawl_folders:_FORMAT"),
    Part("poison", 1, "pages that ended a process, and the mark of the one being read", ("poison", "reading_mark"),
         "stores.poison:_FORMAT"),
    Part("last hour", 1, "samples of the last hour; those of another version are passed over", ("last_hour",),
         "watch.live:_FORMAT"),
    Part("backup", 1, "what a backup names", (), "stores.backup.making:_FORMAT"),
    Part(
        "status", 1, "what a running crawl says of itself", ("status",),
        changes=(
            Change("1.1.0", "sums of hosts in line and of what is queued are missing", How.READ,
                   "inspection.crawl_progress:_SUMS_LATER",
                   "inspection/test_crawl_progress.py::test_a_worker_of_an_earlier_version_says_less"),
            Change("1.5.0", "some sums are missing", How.READ, "watch.fleet_summary:_SUMS_LATER",
                   "watch/test_fleet_summary.py::test_a_worker_of_an_earlier_version_says_less"),
        ),
    ),
)  # fmt: skip
