// Keyboard first. A letter only moves the focus; Enter decides. Letters are off in fields, with a modifier, while
// the connection is lost, and where the reader turned them off (WCAG 2.1.4).
// Hooks: [data-hotkey="a"], [data-hotkey="shift+c"], .task rows, [data-back], [data-keys-switch].

const root = document.documentElement;
const words = document.getElementById("words")?.dataset ?? {};
const GO = { i: "inbox", r: "runs", a: "audit", w: "workload", q: "queues" };
const WORKS_OFFLINE = new Set(["j", "k", "?", "/", "g", "f"]);
let goPending = 0;

function lettersAreOn() {
  try {
    return localStorage.getItem("keys") !== "off";
  } catch {
    return true;
  }
}

// In a form that the reader opened, letters are what they write, even while the focus is on one of its radios.
const isTyping = (node) =>
  Boolean(node.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog[open], form[data-draft]:not([data-auto])"));

function move(step) {
  const held = document.activeElement.closest?.(".task"); // a row that is put elsewhere loses the focus
  document.dispatchEvent(new CustomEvent("countersign:reveal"));
  const rows = [...document.querySelectorAll("[data-list] .task")];
  if (!rows.length) return;
  const focused = rows.indexOf(held);
  const open = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const at = focused >= 0 ? focused : open;
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function go(key) {
  const link = document.querySelector(`.rail [id$="-${GO[key]}"]`);
  if (link) location.assign(link.href);
}

// A card whose form is always open has no button for it: M goes to its first field.
function answerField(key) {
  return key === "m" ? document.querySelector("form[data-auto] :is(textarea, select, input:not([type=hidden]))") : null;
}

function press(key) {
  const targets = document.querySelectorAll(`[data-hotkey="${CSS.escape(key)}"]`);
  const target = [...targets].find((node) => node.offsetParent !== null && !node.disabled) ?? answerField(key);
  if (!target) return false;
  target.focus();
  if (target.matches("input")) target.select();
  target.scrollIntoView({ block: "nearest" });
  return true;
}

function back() {
  const link = document.querySelector("[data-back]");
  if (!link) return false;
  link.click();
  return true;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k" && press("/")) {
    event.preventDefault();
    return;
  }
  if ((event.metaKey || event.ctrlKey) && event.key === "Enter") {
    document.querySelector("[data-send]")?.click(); // inside its form, card.js has answered this key already
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return;
    if (event.target.matches?.("input, textarea, select") && !event.target.closest("[data-draft]")) {
      event.target.blur();
      return;
    }
    if (back()) event.preventDefault();
    return;
  }
  if (event.key.length !== 1 || isTyping(event.target) || !lettersAreOn()) return;

  const key = event.key.toLowerCase();
  if (root.dataset.live === "lost" && !WORKS_OFFLINE.has(key)) return;
  if (goPending && Date.now() - goPending < 1500 && key in GO) {
    goPending = 0;
    go(key);
    event.preventDefault();
    return;
  }
  goPending = 0;
  if (key === "g") goPending = Date.now();
  else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
  else if (key === "?") document.getElementById("shortcuts")?.showModal();
  else if (!press(event.shiftKey && key !== "?" ? `shift+${key}` : key)) return;
  event.preventDefault();
});

const toggle = document.querySelector("[data-keys-switch]");
if (toggle) {
  toggle.checked = lettersAreOn();
  toggle.addEventListener("change", () => {
    try {
      localStorage.setItem("keys", toggle.checked ? "on" : "off");
    } catch {
      // Storage is off: letters stay on.
    }
  });
}

// The send key reads as this keyboard names it.
if (!/mac|iphone|ipad/i.test(navigator.platform)) {
  const rename = () => {
    for (const cap of document.querySelectorAll(".kbd")) {
      if (cap.textContent.startsWith("⌘")) cap.textContent = cap.textContent.replace("⌘", words.sayCtrl);
    }
  };
  rename();
  document.addEventListener("htmx:after:swap", rename);
}
