"""What each metric is called and where in the status it stands: status key -> name and help."""

from __future__ import annotations

BY_LABEL = {
    "pages/": ("crawler_attempts", "Attempts by what became of them, robots.txt included", "reason"),
    "refused/": ("crawler_refused", "URLs refused, when found or when their turn came", "reason"),
    "rests/": ("crawler_backoffs", "Answers and failures after which their host rests", "reason"),
    "spared/": (
        "crawler_spared_requests",
        "Requests that failed by our own network or limits, and will be sent again",
        "reason",
    ),
    "robots/": ("crawler_robots_answers", "Requests for robots.txt by what their answer means", "verdict"),
    "requisites/": ("crawler_requisite_attempts", "Attempts at what pages need to be seen", "reason"),
    "embeds/": ("crawler_embed_attempts", "Attempts at what pages in the browser asked for", "reason"),
    "duplicates/": ("crawler_duplicates", "Pages compared with others by what was found", "kind"),
    "truncated/": ("crawler_truncated_answers", "Answers that were cut by what cut them", "cause"),
    "websub/": ("crawler_websub_messages", "Messages to and of hubs by what became of them", "event"),
    "recrawl/": ("crawler_recrawl_urls", "URLs that come back by how they do", "event"),
    "log_count/": ("crawler_log_records", "Records of the log", "level"),
}
"""Statistics that become a counter with the last part of their key as a label, whose values are a few words."""

COUNTERS = {
    "bytes/received": ("crawler_received_bytes", "Bytes on the wire"),
    "pace/guard_refused": ("crawler_pace_guard_refused", "Requests that the pace guard did not send; must stay 0"),
    "network/outages": ("crawler_network_outages", "Times that no host was reached any more"),
    "errors/ours": ("crawler_own_errors", "Errors of the program itself"),
    "loop/holds": ("crawler_loop_holds", "Times that the event loop was held for 50 ms or more"),
    "loop/held_seconds": ("crawler_loop_held_seconds", "The sum of these"),
    "reading/html": ("crawler_pages_read_apart", "Pages that another process read"),
    "reading/failed": ("crawler_reading_failures", "Files that it could not read in its time and memory"),
    "render/pages": ("crawler_rendered_pages", "Pages that the browser was given"),
    "render/requests": ("crawler_render_requests", "What they asked the web for"),
    "render/from_cache": ("crawler_render_cache_hits", "What they got without a request"),
    "render/blocked": ("crawler_render_blocked_requests", "What they asked for and did not get"),
    "render/short_of_turns": ("crawler_render_short_pages", "Pages that waited too long for their hosts' turns"),
    "render/browsers": ("crawler_browser_starts", "Starts of the browser"),
}
"""Statistics that are one counter each."""

SUMS = {
    "short_pauses": ("crawler_short_pauses", "Pauses shorter than promised; must stay 0"),
    "promised_pause_seconds": ("crawler_promised_pause_seconds", "Pauses promised before requests that were sent"),
    "commit_failures": ("crawler_commit_failures", "Commits that disk or network did not take; they are made again"),
}

PAGES = {"pages": ("crawler_pages", "Answers that are pages: robots.txt and what pages need to be seen are left out")}

DNS = {"questions": ("crawler_dns_questions", "Questions to DNS servers")}

OF_ALL_STARTS = {
    "pages": ("crawler_whole_crawl_pages", "Pages since the crawl's first start"),
    "bytes": ("crawler_whole_crawl_received_bytes", "Bytes on the wire since the crawl's first start"),
    "errors": ("crawler_whole_crawl_errors", "Attempts without an answer since the crawl's first start"),
}

HISTOGRAMS = {
    "first_byte_seconds": ("crawler_first_byte_seconds", "From the request sent to the first byte of its answer"),
    "pause_excess_seconds": (
        "crawler_pause_excess_seconds",
        "How much longer than promised a host was left alone before a request",
    ),
    "commit_seconds": ("crawler_commit_seconds", "From a commit's begin until it is durable"),
}

STATES = ("in_flight", "ready", "waiting", "in_line", "looked_up", "resting", "on_disk")

KNOWN_AT_TIMES = {
    "eta_seconds": ("crawler_left_seconds", "What the queue takes at the promised pace"),
    "ceiling_per_second": ("crawler_allowed_answers_per_second", "What politeness allows now, to all hosts with work"),
}

LEVELS = {
    "lag_seconds": ("crawler_loop_lag_seconds", "How late the loop's tick comes"),
    "cpu_share": ("crawler_cpu_share", "CPU time per second of one core"),
    "commit_lag_seconds": ("crawler_commit_lag_seconds", "Since everything was durable for the last time"),
    "uncommitted": ("crawler_uncommitted_ends", "Ends of requests that the next commit makes durable"),
    "max_in_flight": ("crawler_in_flight_limit", "FRONTIER_MAX_IN_FLIGHT"),
    "given_up_hosts": (
        "crawler_given_up_hosts",
        "Hosts that failed and are left alone, for a day at least or until the next start",
    ),
    "least_pause_margin_seconds": (
        "crawler_least_pause_margin_seconds",
        "By how much the pause nearest to its promise was longer; below 0 it was shorter",
    ),
}
"""Of the status itself; what it does not say, or says as None, is left out."""

MACHINE = {
    "rss_bytes": ("crawler_resident_memory_bytes", "Of all workers on this machine"),
    "disk_free_bytes": ("crawler_disk_free_bytes", "Free on the disk of the crawl's folder"),
    "disk_bytes": ("crawler_disk_size_bytes", "Size of the disk of the crawl's folder"),
    "disk_min_free_bytes": ("crawler_disk_min_free_bytes", "DISK_MIN_FREE_BYTES: with less the crawl pauses"),
    "memory_bytes": (
        "crawler_memory_limit_bytes",
        "Memory of the machine; of unit or container where these have less",
    ),
}

UPLOADS = {
    "waiting_files": ("crawler_upload_waiting_files", "Closed files that are not at ARCHIVE_URL yet"),
    "waiting_bytes": ("crawler_upload_waiting_bytes", "Their size"),
}
UPLOADED = {
    "sent_files": ("crawler_uploaded_files", "Files that ARCHIVE_URL took since the process that sends them began"),
    "sent_bytes": ("crawler_uploaded_bytes", "Bytes that were sent there"),
    "sent_again": ("crawler_uploaded_again", "Files that were not there as they were sent, and were sent again"),
}

OF_WORKERS = {
    "partitions": ("crawler_worker_partitions", "Partitions of hosts that the worker holds"),
    "pages_per_second": ("crawler_worker_pages_per_second", "Lately"),
    "reported_seconds_ago": ("crawler_worker_silent_seconds", "Since its last word; beyond its lease others take over"),
}
