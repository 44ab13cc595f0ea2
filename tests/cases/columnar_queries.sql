-- Queries in the manner of Common Crawl's examples (github.com/commoncrawl/cc-index-table, src/sql/examples/cc-index):
-- for each example that is not tied to Presto's dialect one of ours with the same shape, columns and functions.
-- The examples themselves are run by benchmarks/common_crawl_queries.py. Below each name, the rows it must give.

-- name: compare-mime-type-http-vs-detected
-- rows: [["text/html", "text/html", 5]]
SELECT content_mime_type, content_mime_detected, COUNT(*) AS n
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY content_mime_type, content_mime_detected ORDER BY n DESC

-- name: correlation-language-charset
-- rows: [[null, null, 5, 5, 100.0]]
WITH counts AS (
  SELECT content_languages, content_charset, COUNT(*) AS n_pages,
         SUM(COUNT(*)) OVER(PARTITION BY content_languages) AS n_language
  FROM "ccindex"."ccindex" WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
  GROUP BY content_languages, content_charset)
SELECT content_languages, content_charset, n_pages, CAST(n_language AS INT), ROUND(100.0 * n_pages / n_language, 1)
FROM counts WHERE NOT COALESCE(content_languages LIKE '%,%', FALSE) ORDER BY 1, 2

-- name: count-by-partition
-- rows: [["CC-MAIN-2018-05", "crawldiagnostics", 3], ["CC-MAIN-2018-05", "robotstxt", 1], ["CC-MAIN-2018-05", "warc", 5]]
SELECT crawl, subset, COUNT(*) AS n_captures FROM "ccindex"."ccindex" GROUP BY crawl, subset ORDER BY crawl, subset

-- name: count-by-tld-page-host-domain
-- rows: [["com", 3, 3, 1], ["uk", 1, 1, 1], [null, 1, 1, 0]]
SELECT url_host_tld AS tld, COUNT(*) AS n_pages, COUNT(DISTINCT(url_host_name)) AS n_hosts,
       COUNT(DISTINCT(url_host_registered_domain)) AS n_domains
FROM "ccindex"."ccindex" WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc'
GROUP BY url_host_tld HAVING COUNT(*) >= 1 ORDER BY n_pages DESC, tld NULLS LAST

-- name: count-domains-of-tld
-- rows: [["example.com", 3]]
SELECT url_host_registered_domain AS domain, COUNT(*) AS n_pages
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_host_tld = 'com'
GROUP BY url_host_registered_domain HAVING COUNT(*) >= 1 ORDER BY n_pages DESC LIMIT 500

-- name: count-fetch-status
-- rows: [["crawldiagnostics", 301, 1], ["crawldiagnostics", 404, 2], ["robotstxt", 200, 1], ["warc", 200, 5]]
SELECT subset, fetch_status, COUNT(*) AS n FROM "ccindex"."ccindex" WHERE crawl = 'CC-MAIN-2018-05'
GROUP BY subset, fetch_status ORDER BY subset, fetch_status

-- name: get-records-of-domain
-- rows: [["https://example.com/", "2026-09-21 14:13:20+00"], ["https://www.example.com/", "2026-09-21 14:13:20+00"]]
SELECT url, CAST(fetch_time AS VARCHAR) FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_host_registered_domain = 'example.com' AND url_path = '/'
  AND warc_record_offset > 0 AND warc_record_length > 0 AND warc_filename LIKE 'crawl-%.warc.gz'
ORDER BY url LIMIT 1000

-- name: get-records-of-mime-type
-- rows: [["https://news.example.co.uk/report?id=1", "application/pdf"]]
SELECT url, content_mime_type FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND (content_mime_detected = 'application/pdf' OR content_mime_type LIKE '%pdf%')
LIMIT 1000

-- name: get-records-for-language
-- rows: []
SELECT url, warc_filename, warc_record_offset, warc_record_length FROM "ccindex"."ccindex"
WHERE (crawl = 'CC-MAIN-2018-05' OR crawl = 'CC-MAIN-2018-43') AND subset = 'warc' AND content_languages = 'isl'
LIMIT 10000

-- name: get-records-robotstxt
-- rows: [["https://www.example.com/robots.txt", 200]]
WITH allrobots AS (
  SELECT cc.url, cc.fetch_status, sites.rank,
         ROW_NUMBER() OVER(PARTITION BY cc.url ORDER BY cc.fetch_time DESC) AS n
  FROM "ccindex"."ccindex" AS cc
    RIGHT OUTER JOIN (SELECT 'example.com' AS domain, 1 AS rank) AS sites
    ON sites.domain = cc.url_host_registered_domain
  WHERE cc.crawl = 'CC-MAIN-2018-05' AND cc.subset = 'robotstxt'
    AND (length(cc.url_host_name) = length(cc.url_host_registered_domain)
         OR (length(cc.url_host_name) = (length(cc.url_host_registered_domain)+4)
             AND substr(cc.url_host_name, 1, 4) = 'www.')))
SELECT url, fetch_status FROM allrobots WHERE allrobots.n = 1

-- name: host-length-distrib
-- rows: [[1, 1, 2], [3, 3, 3], [1, 1, 4]]
WITH t AS (SELECT url_host_name AS host_name, cardinality(split(url_host_name, '.')) AS host_name_length
           FROM "ccindex"."ccindex" WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc')
SELECT COUNT(*) AS n_pages, COUNT(DISTINCT host_name) AS uniq_hosts, host_name_length
FROM t GROUP BY host_name_length ORDER BY host_name_length ASC

-- name: get-home-pages-languages
-- rows: [["https://example.com/", null], ["https://forum.bbc.uk/", null], ["https://www.example.com/", null]]
SELECT url, content_languages FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_path = '/' AND url_query IS NULL
  AND url_protocol = 'https' AND url_port IS NULL ORDER BY url LIMIT 100

-- name: redirects
-- rows: [["http://example.com/", "https://example.com/"]]
SELECT url, fetch_redirect FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'crawldiagnostics' AND fetch_redirect IS NOT NULL
