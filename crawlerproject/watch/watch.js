// The live page: reads JSON every few seconds and draws it. Everything foreign reaches the page as text, through text().
"use strict";

const LOOK_MS = 2000, HIDDEN_MS = 30000, HOST_MS = 10000, HOUR_S = 3600, LEAST_SPAN_S = 120, FEW_ROWS = 12;
const SVG = "http://www.w3.org/2000/svg";
// What moves, hides or re-orders text, as rules/printable.py has it; newlines and tabs stay.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;
const STATES = {
  "in-flight": "being asked", free: "may be asked", waiting: "keep their pause", resting: "rest", parked: "parked",
  paused: "paused by the operator", limited: "have had their share",
  "left-alone": "left alone", "on-disk": "wait on disk", done: "nothing queued",
};
const ORDERS = { left: "Longest to go", slowest: "Slowest", largest: "Largest queue", done: "Most done", failing: "Failing" };
const LIFE = {
  starting: ["Starting", ""], crawling: ["Crawling", "good"], paused: ["Paused", "warn"], resting: ["Resting", "warn"],
  idle: ["Idle", ""],
};
// Of RFC 9110 and 6585, those that crawls meet.
const CODES = {
  200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
  304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
  403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 410: "Gone",
  429: "Too Many Requests", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Gateway Timeout",
};

const by = (id) => document.getElementById(id);
const shown = (value) => String(value).replace(UNSAFE, (letter) => "\\u{" + letter.codePointAt(0).toString(16) + "}");

// --- building -----------------------------------------------------------------------------------

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  }
  return node;
}
const h = (name, attributes, ...children) => put(document.createElement(name), attributes, children);
const s = (name, attributes, ...children) => put(document.createElementNS(SVG, name), attributes, children);

// Puts new children in place; what had the keyboard's focus has it again.
function fill(parent, ...children) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  parent.replaceChildren(...children.flat(3).filter((child) => child));
  if (key !== undefined) {
    for (const node of parent.querySelectorAll("[data-key]")) if (node.dataset.key === key) node.focus({ preventScroll: true });
  }
}

// --- numbers ------------------------------------------------------------------------------------

const count = (value) => Math.round(value).toLocaleString("en-US");
const rate = (value) => value >= 100 ? count(value) : String(Number(value.toFixed(value >= 10 ? 1 : 2)));
function bytes(value) {
  if (value < 1000) return `${Math.round(value)} B`;
  let at = -1;
  do { value /= 1000; at += 1; } while (value >= 999.95 && at < 3);
  return `${value.toFixed(1)} ${["kB", "MB", "GB", "TB"][at]}`;
}
function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 59.95) return `${Math.max(value, 0).toFixed(1)} s`;
  if (!(value < 1e11)) return "for ever";
  const whole = Math.round(value), m = Math.floor(whole / 60), hours = Math.floor(whole / 3600), d = Math.floor(whole / 86400);
  return d ? `${d} d ${hours % 24} h` : hours ? `${hours} h ${m % 60} min` : `${m} min ${whole % 60} s`;
}
const moments = (value) => value !== null && value < 1 ? `${Math.round(value * 1000)} ms` : seconds(value);
const clock = (text) => text ? text.slice(11, 19) : "–";
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// --- charts -------------------------------------------------------------------------------------

// Round marks from zero up; of what is counted in whole numbers, whole ones.
function ticks(most, whole) {
  const rough = most / 4, power = 10 ** Math.floor(Math.log10(rough));
  const found = [], steps = whole ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  const step = Math.max(whole ? 1 : 0, steps.map((n) => n * power).find((n) => n >= rough * 0.999));
  for (let at = step; at <= most * 1.0001; at += step) found.push(at);
  return { found, top: Math.max(most * 1.08, found.at(-1) || step) };
}

// Means of a column over equal intervals; null where there is no row.
function bins(rows, value, from, to, many) {
  const sums = Array.from({ length: many }, () => [0, 0]);
  for (const row of rows) {
    const found = value(row);
    const place = Math.min(many - 1, Math.floor((row.at - row.seconds / 2 - from) / (to - from) * many));
    if (found === null || place < 0) continue;
    sums[place][0] += found * row.seconds;
    sums[place][1] += row.seconds;
  }
  return sums.map(([sum, weight]) => weight ? sum / weight : null);
}

function path(values, x, y) {
  let text = "", pen = false;
  values.forEach((value, at) => {
    if (value === null) { pen = false; return; }
    text += `${pen ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  return text;
}

// One card: a legend with the figures of now (or of where the pointer is), and the last hour below.
function chart(box, rows, now, { lines, unit, format, least, whole }) {
  const plot = box.querySelector(".plot") || box.appendChild(h("div", { class: "plot" }));
  const width = plot.clientWidth, height = plot.clientHeight;
  if (!width || !height) return;
  const first = rows.length ? rows[0].at - rows[0].seconds : now;
  const span = Math.min(HOUR_S, Math.max(LEAST_SPAN_S, now - first)), from = now - span;
  const many = Math.max(6, Math.floor(Math.min(width / 4, span / 10)));
  const means = lines.map((line) => bins(rows, line.value, from, now, many));
  const own = Math.max(0, ...means[0].filter((value) => value !== null));
  const beside = means[1] ? Math.max(0, ...means[1].filter((value) => value !== null)) : 0;
  const above = own > 0 && beside > 4 * own; // beside it the line itself would lie on the ground
  const { found, top } = ticks(Math.max(own, above ? 0 : beside) || least, whole);
  const foot = 20, base = height - foot, x = (at) => (at + 0.5) / many * width, y = (value) => base - value / top * (base - 14);
  const parts = [];
  for (const at of found) {
    parts.push(s("line", { class: "grid", x1: 0, x2: width, y1: y(at), y2: y(at) }));
    parts.push(s("text", { x: 0, y: y(at) - 4 }, `${format(at)}${unit}`));
  }
  const last = means[0].findLastIndex((value) => value !== null);
  const begin = means[0].findIndex((value) => value !== null);
  if (last >= 0) {
    let area = "", open = null;
    means[0].forEach((value, at) => {
      if (value === null) { if (open !== null) area += `V${base}Z`; open = null; return; }
      area += open === null ? `M${x(at).toFixed(1)} ${base}L${x(at).toFixed(1)} ${y(value).toFixed(1)}` : `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
      open = at;
      if (at === last || means[0][at + 1] === null) { area += `L${x(at).toFixed(1)} ${base}Z`; open = null; }
    });
    parts.push(s("path", { class: "area", d: area }));
  }
  lines.forEach((line, at) => parts.push(s("path", { class: at ? "second" : "line", d: path(means[at], x, y) })));
  parts.push(s("line", { class: "base", x1: 0, x2: width, y1: base, y2: base }));
  const step = [15, 30, 60, 120, 300, 600, 900].find((n) => span / n <= (width < 480 ? 4 : 6)) || 1200;
  for (let ago = 0; ago <= span * 0.97; ago += step) {
    const place = width - ago / span * width;
    const text = ago === 0 ? "now" : ago < 60 ? `−${ago} s` : ago % 60 ? `−${(ago / 60).toFixed(1)} min` : `−${ago / 60} min`;
    parts.push(s("text", { x: place, y: height - 5, "text-anchor": ago === 0 ? "end" : place < 25 ? "start" : "middle" }, text));
  }
  const label = `${lines.map((line) => line.name).join(" and ")}, last ${seconds(span)}; ` +
    lines.map((line) => `${line.name} now ${line.now === null ? "unknown" : format(line.now) + unit}`).join(", ");
  const cursor = s("line", { class: "cursor", y1: 0, y2: base, visibility: "hidden" });
  fill(plot, s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, parts, cursor));
  const legend = (place) => fill(
    box.querySelector(".legend") || box.insertBefore(h("div", { class: "legend" }), plot),
    ...lines.map((line, at) => {
      const value = place === null ? line.now : means[at][place];
      const note = at && above && place === null ? " (above the scale)" : "";
      return h("span", {}, h("span", { class: at ? "key second" : "key" }), `${line.name} `,
        h("b", {}, value === null ? "–" : format(value) + unit), note);
    }),
    place === null ? null : h("span", { class: "dim" }, `${seconds((many - place - 0.5) / many * span)} ago`),
  );
  const move = (event) => {
    const place = Math.max(0, Math.min(many - 1, Math.floor(event.offsetX / width * many)));
    cursor.setAttribute("x1", x(place)); cursor.setAttribute("x2", x(place)); cursor.setAttribute("visibility", "visible");
    plot.dataset.place = String(place);
    legend(place);
  };
  plot.onpointermove = move;
  plot.onpointerleave = () => { delete plot.dataset.place; cursor.setAttribute("visibility", "hidden"); legend(null); };
  if (plot.dataset.place !== undefined && plot.matches(":hover")) {
    const place = Math.min(many - 1, Number(plot.dataset.place));
    cursor.setAttribute("x1", x(place)); cursor.setAttribute("x2", x(place)); cursor.setAttribute("visibility", "visible");
    legend(place);
  } else legend(null);
  return begin;
}

function barList(pairs, none, kind = () => "") {
  if (!pairs.length) return h("p", { class: "note" }, none);
  const most = Math.max(...pairs.map((pair) => pair[1]), 1), total = pairs.reduce((sum, pair) => sum + pair[1], 0);
  const share = (number) => number / total < 0.01 ? "<1 %" : `${Math.round(number / total * 100)} %`;
  return h("ul", { class: "bars" }, pairs.map(([name, number]) => h("li", {},
    h("span", { class: "name" }, name), h("span", { class: "value" }, `${count(number)} `, h("span", { class: "dim" }, share(number))),
    s("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect", { class: `bar ${kind(name)}`, width: number / most * 100, height: 1 })))));
}

const meter = (name, text, share) => h("li", {}, h("span", { class: "name" }, name), h("span", { class: "value" }, text),
  s("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "bar", width: Math.max(0, Math.min(1, share)) * 100, height: 1 })));

// --- the crawl ----------------------------------------------------------------------------------

let rows = [], columns = [], live = null, order = "left", table = null, all = false;

function overview() {
  const { progress, machine, totals } = live;
  // A crawl that was started again has more behind it than this start.
  const since = (name, text) => totals[name] === progress[name] ? null : `${text(progress[name])} since this start`;
  const notes = (...parts) => parts.filter((part) => part).join("; ");
  const total = Object.values(live.statuses).reduce((sum, number) => sum + number, 0);
  const figure = (name, value, note, alarm) => h("div", { class: alarm ? "alarm" : null },
    h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null));
  fill(by("figures"),
    figure("Pages", count(totals.pages), notes(`${rate(live.pages_per_second)} pages/s in the last minute`, since("pages", count))),
    figure("Received", bytes(totals.bytes), notes(`${bytes(live.bytes_per_second)}/s in the last minute`, since("bytes", bytes))),
    figure("Queued", plural(progress.queued_urls, "URL"), progress.eta_seconds === null ? "nothing left" : `at least ${seconds(progress.eta_seconds)} at the promised pace`),
    figure("Errors", count(totals.errors), since("errors", count) || (total ? `beside ${plural(total, "answer")}` : "")),
    figure("Asked just now", plural(progress.hosts_in_flight, "host"), progress.next_free_seconds === null ? "no host waits" : `next free in ${seconds(progress.next_free_seconds)}`),
    figure("Pauses too short", count(live.short_pauses), "must stay 0", live.short_pauses > 0));
  chart(by("pages"), rows, live.time, {
    unit: " pages/s", format: rate, least: 1,
    lines: [{ name: "Fetched", value: (row) => row.pages, now: live.pages_per_second },
      { name: "Politeness allows", value: (row) => row.allowed, now: live.allowed }],
  });
  chart(by("bytes"), rows, live.time, { unit: "/s", format: bytes, least: 1000, whole: true, lines: [{ name: "Received", value: (row) => row.bytes, now: live.bytes_per_second }] });
  chart(by("queue"), rows, live.time, { unit: " URLs", format: count, least: 4, whole: true, lines: [{ name: "Queued", value: (row) => row.queued, now: progress.queued_urls }] });
  states();
  fill(by("errors"), barList(live.errors.slice(0, 8), "No attempt has failed since the start."),
    live.refused.length ? h("details", { "data-keep": "refused", open: by("errors").querySelector("details")?.open }, h("summary", { "data-key": "refused" }, `${count(live.refused.reduce((sum, pair) => sum + pair[1], 0))} URLs were refused`), barList(live.refused.slice(0, 12), "")) : null);
  const answers = Object.entries(live.statuses).sort((a, b) => b[1] - a[1]).slice(0, 8);
  fill(by("answers"), barList(answers.map(([code, number]) => [`${code} ${CODES[code] || ""}`, number]), "No server has answered yet.", (name) => `c${name[0]}`));
  const used = machine.disk_bytes - machine.disk_free_bytes;
  fill(by("machine"), h("ul", { class: "bars" },
    meter("Memory of the crawl", machine.memory_bytes ? `${bytes(machine.rss_bytes)} of ${bytes(machine.memory_bytes)}` : bytes(machine.rss_bytes), machine.rss_bytes / (machine.memory_bytes || Infinity)),
    meter("Disk", `${bytes(machine.disk_free_bytes)} free of ${bytes(machine.disk_bytes)}`, used / machine.disk_bytes),
    meter("Processor", `${Math.round(live.cpu_share * 100)} % of one core`, live.cpu_share)),
    h("p", { class: "note" }, `The crawl pauses below ${bytes(machine.disk_min_free_bytes)} of free disk. Its loop is ${Math.round(live.lag_seconds * 1000)} ms late.`));
}

function states() {
  const found = Object.keys(STATES).filter((state) => live.hosts[state]).map((state) => [state, live.hosts[state]]);
  const total = found.reduce((sum, pair) => sum + pair[1], 0);
  if (!total) return fill(by("states"), h("p", { class: "note" }, "No host is known yet."));
  let at = 0;
  const parts = found.map(([state, number]) => {
    const part = s("rect", { class: `s-${state}`, x: at, width: number / total * 100, height: 1 });
    at += number / total * 100;
    return part;
  });
  fill(by("states"),
    s("svg", { class: "stack", viewBox: "0 0 100 1", preserveAspectRatio: "none", role: "img", "aria-label": found.map(([state, number]) => `${number} ${state}`).join(", ") }, parts),
    h("ul", { class: "states" }, found.map(([state, number]) => h("li", {}, h("span", { class: `swatch s-${state}` }), STATES[state], h("span", { class: "n" }, count(number))))));
}

const hostLink = (name) => h("a", { href: `#/host/${encodeURIComponent(name)}`, "data-key": `host ${name}`, class: "url" }, name);

function hostTable() {
  fill(by("orders"), Object.entries(ORDERS).map(([name, text]) => {
    const button = h("button", { type: "button", "data-key": name, "aria-pressed": String(name === order) }, text);
    button.onclick = () => { order = name; table = null; hostTable(); look(); };
    return button;
  }));
  if (!table) return;
  if (!table.hosts.length) return fill(by("table"), h("p", { class: "note" }, "None."));
  const head = [["host"], ["state", "opt"], ["queued", "n"], ["done", "n opt"], ["pause", "n"], ["response", "n opt"], ["free in", "n opt"], ["rests", "n opt"], ["failures", order === "failing" ? "n" : "n opt"], ["to go", "n"]];
  fill(by("table"), h("table", {},
    h("thead", {}, h("tr", {}, head.map(([name, kind]) => h("th", { class: kind, scope: "col" }, name)))),
    h("tbody", {}, table.hosts.slice(0, all ? undefined : FEW_ROWS).map((row) => h("tr", {},
      h("td", { class: "host" }, hostLink(row.host), h("div", { class: "narrow dim" }, h("span", { class: `dot s-${row.state}` }), row.state)),
      h("td", { class: "opt" }, h("span", { class: `dot s-${row.state}` }), row.state),
      h("td", { class: "n" }, count(row.queued)), h("td", { class: "n opt" }, count(row.done)),
      h("td", { class: "n" }, seconds(row.pace_seconds)), h("td", { class: "n opt" }, moments(row.response_seconds)),
      h("td", { class: "n opt" }, row.free_in_seconds ? seconds(row.free_in_seconds) : "–"),
      h("td", { class: "n opt" }, row.rests_seconds ? seconds(row.rests_seconds) : "–"),
      h("td", { class: order === "failing" ? "n" : "n opt" }, count(row.failures)), h("td", { class: "n" }, seconds(row.eta_seconds)))))),
  table.hosts.length > FEW_ROWS ? more() : null,
  h("p", { class: "note" }, `Of ${plural(table.of, "host")} in memory. All of them: scrapy hosts.`));
}

function more() {
  const button = h("button", { type: "button", "data-key": "more" }, all ? `Only ${FEW_ROWS}` : `Show ${table.hosts.length}`);
  button.onclick = () => { all = !all; hostTable(); };
  return h("p", { class: "note" }, button);
}

// --- one host, one URL ----------------------------------------------------------------------------

const TONES = { "in-flight": "mark", free: "mark", waiting: "mark", resting: "warn", paused: "warn", limited: "warn", parked: "bad", "left-alone": "bad",
  done: "good", leased: "mark", retry: "warn", refused: "bad", failed: "bad" };
const pill = (state) => h("span", { class: `pill ${TONES[state] || ""}` }, state);

// The facts of `scrapy why`, a line each: "name: text", as the command prints them below the verdict.
function said(found) {
  return found.lines.slice(2).map((line) => {
    const at = line.indexOf(": ");
    return at < 0 ? ["", line.trim()] : [line.slice(0, at).trim(), line.slice(at + 2)];
  });
}
const facts = (pairs) => h("dl", { class: "facts" }, pairs.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));

function hostView(name, found) {
  const box = by("host"), pairs = said(found), answer = found.answer;
  const heading = h("div", { class: "spread" }, h("h2", { class: "url" }, name), pill(answer.state || "unknown"), h("a", { href: "#/", "data-key": "back" }, "All hosts"));
  const rest = pairs.find(([word]) => word === "rests until");
  const rests = rest ? h("p", { class: "verdict warn" }, `Rests until ${rest[1]}.`) : null;
  fill(box, heading, rests, h("div", { class: "cards" },
    h("section", { class: "card" }, h("h2", {}, "Pace and queue"), facts(pairs)),
    h("section", { class: "card" }, h("h2", {}, "Pauses before its last requests"), h("div", { class: "chart", id: "pauses" })),
    h("section", { class: "card wide" }, h("h2", {}, "Last requests"), requests(found.requests)),
    h("section", { class: "card wide" }, h("h2", {}, "robots.txt"), found.robots.length ? found.robots.map(robots) : h("p", { class: "note" }, "No copy is kept: it has none, or was not asked yet."))));
  pauses(by("pauses"), found.requests);
}

// Requests that reached the host, each with the pause before it; the others disturbed no server.
function paused(requested) {
  let before = null;
  return requested.map((row) => {
    const began = Date.parse(row.time), ended = Date.parse(row.end);
    const kept = row.ip && before !== null ? (began - before) / 1000 : null;
    if (row.ip) before = Math.max(ended, before || ended);
    return { ...row, kept };
  });
}

function pauses(box, requested) {
  const found = paused(requested).filter((row) => row.kept !== null && row.delay_seconds !== null);
  if (!found.length) return fill(box, h("p", { class: "note" }, "It was not asked twice of late."));
  const promised = found.map((row) => row.delay_seconds);
  const most = Math.max(...promised) * 1.3, { found: marks, top } = ticks(most || 1);
  fill(box, h("div", { class: "legend" }, h("span", {}, h("span", { class: "key block" }), "kept"), h("span", {}, h("span", { class: "key second" }), "promised ", h("b", {}, seconds(promised.at(-1))))), h("div", { class: "plot" }));
  const plot = box.querySelector(".plot"), width = plot.clientWidth, height = plot.clientHeight, base = height - 20;
  const y = (value) => base - Math.min(value, top) / top * (base - 14), left = 48, wide = (width - left) / Math.max(found.length, 12);
  const parts = marks.flatMap((at) => [s("line", { class: "grid", x1: left, x2: width, y1: y(at), y2: y(at) }), s("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, seconds(at))]);
  found.forEach((row, at) => {
    const short = row.kept < row.delay_seconds - 0.001;
    parts.push(s("rect", { class: short ? "short" : "kept", x: left + at * wide + 1, width: Math.max(1, wide - 2), y: y(row.kept), height: Math.max(1, base - y(row.kept)) },
      s("title", {}, `${clock(row.time)}: ${seconds(row.kept)} kept, ${seconds(row.delay_seconds)} promised`)));
  });
  parts.push(s("path", { class: "second", d: found.map((row, at) => `M${left + at * wide} ${y(row.delay_seconds)}h${wide}`).join("") }));
  parts.push(s("line", { class: "base", x1: left, x2: width, y1: base, y2: base }), s("text", { x: left, y: height - 5 }, clock(found[0].time)),
    s("text", { x: left + Math.max(150, wide * found.length), y: height - 5, "text-anchor": "end" }, `${clock(found.at(-1).time)} UTC`));
  const short = found.filter((row) => row.kept < row.delay_seconds - 0.001).length;
  fill(plot, s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${plural(found.length, "pause")}, ${short} shorter than promised` }, parts));
}

function requests(requested) {
  if (!requested.length) return h("p", { class: "note" }, "None among the last lines of the request log.");
  const head = [["time (UTC)"], ["answer"], ["URL"], ["bytes", "n opt"], ["took", "n opt"], ["pause", "n"]];
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map(([name, kind]) => h("th", { class: kind, scope: "col" }, name)))),
    h("tbody", {}, paused(requested).reverse().map((row) => h("tr", {},
      h("td", {}, clock(row.time)),
      h("td", { class: row.status === null && row.reason !== "rendered" ? "warn" : null }, row.status === null ? row.reason : row.status),
      h("td", { class: "host" }, h("a", { href: `#/why/${encodeURIComponent(row.url)}`, class: "url", title: shown(row.url), "data-key": `why ${row.time} ${row.url}` }, local(row.url)), row.error ? h("div", { class: "dim" }, row.error) : null),
      h("td", { class: "n opt" }, row.bytes ? bytes(row.bytes) : "–"), h("td", { class: "n opt" }, moments(row.seconds)),
      h("td", { class: "n" }, row.kept === null ? "–" : seconds(row.kept)))))));
}

// What comes after the host, of which all of them are.
const local = (url) => url.replace(/^https?:\/\/[^/?#]*/, "") || url;

const robots = (file) => h("details", { open: true },
  h("summary", { "data-key": file.origin }, `${file.origin}/robots.txt, so since ${new Date(file.since * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`),
  h("pre", {}, file.text || "(empty)"), file.cut ? h("p", { class: "note" }, "Only its beginning is shown.") : null);

function whyView(found) {
  const { answer } = found, pairs = said(found), rule = pairs.find(([name]) => name === "rule" || name === "excluded");
  const host = answer.url ? /^https?:\/\/([^/?#]+)/.exec(answer.url)?.[1] : null;
  fill(by("why"), h("section", { class: "card" },
    h("div", { class: "spread" }, h("h2", { class: "url" }, answer.url || answer.host), pill(answer.state), answer.reason ? h("code", {}, answer.reason) : null),
    rule ? h("p", { class: "verdict" }, rule[1]) : null,
    facts(pairs.filter((pair) => pair !== rule)),
    host ? h("p", { class: "note" }, "Its host: ", hostLink(host)) : null));
}

function message(view, text) { fill(by(view), h("p", { class: "card" }, text)); }

// --- looking ------------------------------------------------------------------------------------

async function ask(address) {
  const answer = await fetch(address, { credentials: "omit", cache: "no-store" });
  const type = answer.headers.get("content-type") || "";
  if (!type.startsWith("application/json")) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
  return answer.json();
}

let route = ["", ""], timer = 0, seen = 0, asked = 0;

async function look() {
  clearTimeout(timer);
  const number = ++asked;
  try {
    const since = rows.length ? rows.at(-1).at : 0;
    const found = await ask(`live.json?since=${since}`);
    if (number !== asked) return;
    if (found.started !== live?.started) rows = since ? rows : [];
    live = found;
    columns = found.columns;
    for (const row of found.rows) rows.push(Object.fromEntries(columns.map((name, at) => [name, row[at]])));
    rows = rows.filter((row) => row.at > (live.time || 0) - HOUR_S);
    seen = Date.now();
    if (route[0] === "") table = await ask(`hosts.json?by=${order}`);
    if (number === asked) draw();
  } catch (error) { if (number === asked) lost(); }
  if (number === asked) timer = setTimeout(look, document.hidden ? HIDDEN_MS : LOOK_MS);
}

// A text that is read aloud when it changes.
function say(id, text) { if (by(id).textContent !== shown(text)) fill(by(id), document.createTextNode(shown(text))); }

function head() {
  const [word, tone] = LIFE[live.state] || [live.state, ""];
  fill(by("folder"), document.createTextNode(shown(`Crawl ${live.folder}`)));
  by("state").className = `pill ${tone}`;
  say("state", word);
  document.title = `${live.progress ? count(live.totals.pages) + " pages · " : ""}${shown(live.folder)}`;
  document.body.classList.remove("stale");
  by("bound").className = live.state === "paused" ? "warn" : "dim";
  fill(by("bound"), document.createTextNode(shown(live.state === "paused" ? live.progress.paused : live.bound ? [`Bound by ${live.bound.text}.`, ...(live.progress.standing || []), live.uploads].filter(Boolean).join(" ") : "The crawl has not begun.")));
  fill(by("foot"), h("span", {}, live.started ? `Started ${new Date(live.started * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC; charts by reason and status count since then` : ""),
    h("span", {}, live.build ? `crawlerproject ${live.build.version}, Scrapy ${live.build.scrapy}, Python ${live.build.python}, page reader: ${live.build.reader}` : ""),
    h("a", { href: "status.json", "data-key": "status" }, "status.json"), h("a", { href: "metrics", "data-key": "metrics" }, "metrics"));
}

function draw() {
  head();
  if (route[0] !== "") return;
  if (!live.progress) return;
  by("overview").hidden = false;
  overview();
  hostTable();
}

function lost() {
  document.body.classList.add("stale");
  by("state").className = "pill bad";
  say("state", "No answer");
  by("bound").className = "warn";
  const ago = seen ? `This is how it stood ${seconds((Date.now() - seen) / 1000)} ago` : "Nothing has been seen of it";
  fill(by("bound"), document.createTextNode(`The crawl has ended, or cannot be reached. ${ago}.`));
}

let hostTimer = 0, turn = 0;

async function hostLook(name, mine) {
  clearTimeout(hostTimer);
  try {
    const found = await ask(`host.json?name=${encodeURIComponent(name)}`);
    if (mine !== turn) return;
    if (found.error) message("host", found.error); else hostView(name, found);
  } catch (error) { if (mine === turn && !by("host").querySelector(".cards")) message("host", error.message); }
  if (mine === turn) hostTimer = setTimeout(() => document.hidden ? hostLook(name, turn) : hostLook(name, mine), document.hidden ? HIDDEN_MS : HOST_MS);
}

async function whyLook(text, mine) {
  try {
    const found = await ask(`why.json?q=${encodeURIComponent(text)}`);
    if (mine !== turn) return;
    if (found.error) message("why", found.error); else whyView(found);
  } catch (error) { if (mine === turn) message("why", error.message); }
}

function go() {
  const [, view, rest] = /^#\/(?:(host|why)\/(.*))?$/s.exec(location.hash) || [];
  let text = rest || "";
  try { text = decodeURIComponent(text); } catch (error) { /* as it stands */ }
  route = [text ? view || "" : "", text];
  turn += 1;
  clearTimeout(hostTimer);
  for (const id of ["overview", "host", "why"]) by(id).hidden = (route[0] || "overview") !== id || (id === "overview" && !live?.progress);
  if (route[0]) {
    by("q").value = text;
    message(route[0], "Looking …");
    window.scrollTo(0, 0);
    if (route[0] === "host") hostLook(text, turn); else whyLook(text, turn);
  }
  look();
}

by("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = by("q").value.trim();
  if (!text) return;
  const name = !text.includes("/") && !/^(mailto|javascript|data|tel):/.test(text) ? "host" : "why";
  const target = `#/${name}/${encodeURIComponent(name === "host" ? text.toLowerCase() : text)}`;
  if (location.hash === target) go(); else location.hash = target;
});
addEventListener("hashchange", go);
addEventListener("resize", () => { if (live) draw(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
go();
