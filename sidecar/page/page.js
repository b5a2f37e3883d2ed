"use strict";
// Replaces the parts of the page that the sidecar says have changed, and says how old what is seen
// is. Without this script the page loads itself anew instead.
(() => {
  const QUIET = 15; // seconds; the sidecar speaks every 5
  const RETRY = 5;
  const link = document.getElementById("link");
  const held = new Map(); // parts that changed while text in them was selected
  let ahead = Number(document.body.dataset.now) - Date.now() / 1000; // of the sidecar's clock
  let heard = Date.now();
  let source = null;
  let again = 0;

  const now = () => Date.now() / 1000 + ahead;

  function age(seconds) {
    const s = Math.max(0, Math.round(seconds));
    if (s < 120) return `${s} s`;
    if (s < 7200) return `${Math.round(s / 60)} min`;
    return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
  }

  function say(state, text) {
    if (document.body.dataset.link === state) return; // a screen reader says it once
    document.body.dataset.link = state;
    link.textContent = text;
  }

  function tick() {
    for (const span of document.querySelectorAll("[data-at]")) {
      span.textContent = ` ${age(now() - Number(span.dataset.at))} ago`;
    }
    const silent = (Date.now() - heard) / 1000;
    if (silent > QUIET) {
      lost();
      if (source && source.readyState === EventSource.OPEN) retry(); // it only looks open
    }
    const seen = document.getElementById("link-age");
    seen.textContent = document.body.dataset.link === "live" ? "" : ` ${age(silent)} old`;
  }

  function lost() {
    say("lost", "Connection lost: trying again. What you see is");
  }

  function retry() {
    if (source) source.close();
    source = null;
    clearTimeout(again);
    again = setTimeout(listen, RETRY * 1000);
  }

  function isSelected(element) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && selection.containsNode(element, true);
  }

  function put(part) {
    const element = document.getElementById(part.id);
    if (!element || element.dataset.part === part.version) return;
    if (isSelected(element)) {
      held.set(part.id, part); // somebody copies a command
      return;
    }
    held.delete(part.id);
    const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
    const opened = [...element.querySelectorAll("details[open]")].map((each) => each.id);
    element.innerHTML = part.html;
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    element.dataset.part = part.version;
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const title = element.querySelector("[data-title]");
    if (part.id === "headline" && title) {
      document.title = document.title.replace(/^.* · /, `${title.dataset.title} · `);
    }
    tick();
  }

  function listen() {
    source = new EventSource("/v1/stream");
    source.addEventListener("hello", (event) => {
      if (JSON.parse(event.data).edition !== document.body.dataset.edition) location.reload();
    });
    source.addEventListener("part", (event) => put(JSON.parse(event.data)));
    source.addEventListener("now", (event) => {
      ahead = Number(event.data) - Date.now() / 1000;
      heard = Date.now();
      say("live", "Live");
      tick();
    });
    source.onerror = () => {
      lost();
      if (source.readyState === EventSource.CLOSED) retry(); // refused: it does not try by itself
    };
  }

  document.addEventListener("selectionchange", () => {
    for (const part of [...held.values()]) put(part);
  });
  say("connecting", "Connecting: what you see is");
  setInterval(tick, 1000);
  tick();
  listen();
})();
