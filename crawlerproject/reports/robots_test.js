// What a robots.txt says to one crawler (RFC 9309): the groups that name it, else those of "*"; of their lines that
// match the longest decides, Allow before Disallow. The page is all there is: nothing leaves the browser.
"use strict";
const FIELD = /^\s*(user[- ]?agent|allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw|crawl[- ]?delay)(?:[^:#]*:|\s+(?=\S+\s*(?:#|$)))([^#]*)/i;

function groupOf(text, token) {
  const ours = {named: false, rules: [], delay: 0}, everyone = {rules: [], delay: 0};
  let current = [], naming = false;
  for (const line of text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/)) {
    const found = FIELD.exec(line);
    if (!found) continue;
    const field = found[1].toLowerCase(), value = found[2].trim();
    if (field.startsWith("user")) {
      if (!naming) [current, naming] = [[], true];
      for (const part of value.split(",")) {
        const name = part.trim(), word = /^[\w-]+/.exec(name.replace(/^\*+/, ""));
        if (name === "*" || /^\*\s/.test(name)) current.push(everyone);
        else if (word && word[0].toLowerCase() === token.toLowerCase()) current.push(ours), ours.named = true;
      }
    } else if (field.startsWith("crawl")) {
      for (const group of current) group.delay = Math.max(group.delay, parseFloat(value.replace(",", ".")) || 0);
    } else {
      naming = false;
      for (const group of current) if (value) group.rules.push({allow: field === "allow", pattern: value, line: line.trim()});
    }
  }
  return ours.named ? ours : everyone;
}

// One spelling of a path or of a part of a pattern: escapes in capitals, and only where they mean something.
function spelled(text) {
  return text.replace(/%([0-9a-f]{2})?/gi, (whole, hex) => {
    const character = hex && String.fromCharCode(parseInt(hex, 16));
    return !hex ? "%25" : /[!-~]/.test(character) && !"%:/?#[]@!&()+,;=".includes(character) ? character : whole.toUpperCase();
  }).replace(/[^!-~]+/g, encodeURIComponent);
}

function matches(pattern, path) {
  const anchored = pattern.endsWith("$"), parts = (anchored ? pattern.slice(0, -1) : pattern).split("*");
  const source = parts.map((part) => spelled(part).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*?");
  return new RegExp("^" + source + (anchored ? "$" : "")).test(path);
}

function verdict(text, token, address) {
  const url = new URL(address.trim() || "/", "https://site.example/"), path = spelled(url.pathname + url.search);
  const group = groupOf(text, token), octets = (rule) => encodeURI(rule.pattern).replaceAll("%25", "%").length;
  const folders = group.rules.filter((rule) => rule.allow && rule.pattern.endsWith("/index.html"));
  const rules = [...group.rules, ...folders.map((rule) => ({...rule, pattern: rule.pattern.slice(0, -10) + "$"}))];
  let best = null;
  for (const rule of url.pathname === "/robots.txt" ? [] : rules) {
    if (!matches(rule.pattern, path)) continue;
    if (!best || octets(rule) > octets(best) || (octets(rule) === octets(best) && rule.allow)) best = rule;
  }
  return {allowed: !best || best.allow, line: best ? best.line : "", delay: group.delay};
}

document.getElementById("test")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target, said = form.querySelector("output");
  try {
    const {allowed, line, delay} = verdict(form.robots.value, form.dataset.name, form.address.value);
    const words = [allowed ? said.dataset.allowed : said.dataset.blocked, line, delay ? `Crawl-delay: ${delay} s` : ""];
    said.textContent = words.filter(Boolean).join(" · ");
  } catch {
    said.textContent = said.dataset.unread;
  }
});
