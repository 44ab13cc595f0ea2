"""Another number of workers on one machine: partitions move between the workers' folders while nothing runs.

``repartition`` decides and drives. Every row of the partitions that change hands is first put into the frontier of
its new holder; when all of them are there, safe from a power loss, the new plan counts, and only then they are removed
where they were. Both halves may be done again from any point, so whatever ends the process, the next start goes on.

``journal`` says how far it has come. ``partition_copying`` goes through the rows, checks the disk and closes the WARC
files that a folder was writing; ``fact_rules`` says what becomes of what is known of the crawl as a whole.
"""
