// The desk renews its parts: each element with data-live="SECONDS" is put in place again from a new look at the same page.
// The page is a whole one without this. Nothing foreign is made markup here: the browser reads the page as it read the first.
"use strict";

const TICK_MS = 1000, LEAST_S = 1;
const renew = document.getElementById("renew"), stale = document.getElementById("stale");
const parts = () => [...document.querySelectorAll("[data-live]")].filter((part) => Number(part.dataset.live) >= LEAST_S);
let age = 0, asking = false;

// A part that the keyboard is in, or of which text is marked, stays as it is: what one reads does not jump away.
function isUsed(part) {
  const marked = document.getSelection();
  return part.contains(document.activeElement) || (!marked.isCollapsed && part.contains(marked.anchorNode));
}

function put(fresh) {
  for (const part of parts()) {
    if (age % Number(part.dataset.live) || isUsed(part)) continue;
    const found = fresh.getElementById(part.id);
    if (!found || found.isEqualNode(part)) continue;
    const scrolled = [...part.querySelectorAll(".scroll, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
    part.replaceWith(document.adoptNode(found));
    [...found.querySelectorAll(".scroll, pre")].forEach((one, at) => {
      if (scrolled[at]) [one.scrollLeft, one.scrollTop] = scrolled[at];
    });
  }
}

function say(text) { if (stale.textContent !== text) stale.textContent = text; }

function look() {
  const request = new XMLHttpRequest(); // its responseType "document" is what reads a page without running anything of it
  asking = true;
  request.open("GET", location.href.split("#")[0]);
  request.responseType = "document";
  request.timeout = 30000;
  request.onload = () => {
    if (request.status === 200 && request.response) { put(request.response); say(""); } else say("The desk does not show this page any more.");
  };
  request.onerror = request.ontimeout = () => say("The desk does not answer any more: this is how it stood.");
  request.onloadend = () => { asking = false; };
  request.send();
}

if (parts().length) {
  document.getElementById("renewing").hidden = false;
  setInterval(() => {
    if (document.hidden || !renew.checked || asking) return;
    age += 1;
    if (parts().some((part) => age % Number(part.dataset.live) === 0)) look();
  }, TICK_MS);
}
