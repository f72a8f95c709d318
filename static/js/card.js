// The forms of cards. Everything works without this: it only presses the buttons that are there anyway, earlier.
// Hooks: form[data-card-form], [data-card-refresh] (the form's own "update" button), [data-card-reshape] (a radio or list that
// changes the fields), [data-card-diff] (what you change), textarea[data-json], [data-send] (the button that decides),
// [data-send-label] (its words, which say how much an edit changes).

const PAUSE = 500;
const timers = new WeakMap();
const running = new WeakMap();

function refresh(form) {
  const button = form.querySelector("[data-card-refresh]");
  if (button) form.requestSubmit(button);
}

// Valid JSON is said while typing; what is wrong is said by the server, with line and column.
function checkJson(area) {
  const told = area.parentElement.querySelector("[data-json-ok]");
  if (!told) return;
  let valid = false;
  try {
    JSON.parse(area.value);
    valid = true;
  } catch {}
  told.hidden = !valid;
}

// Where the browser cannot size a text area by its text, size it here.
function fit(area) {
  if (CSS.supports("field-sizing", "content")) return;
  const lines = area.value.split("\n").length + 1;
  area.rows = Math.min(24, Math.max(Number(area.rows) || 3, lines));
}

// The live difference: the same post as "update", of which only the difference is taken. Typing is never replaced.
async function compare(form) {
  const place = document.querySelector("[data-card-diff]");
  if (!place) return;
  running.get(form)?.abort();
  const stop = new AbortController();
  running.set(form, stop);
  const data = new FormData(form);
  data.set("_op", "refresh");
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(data),
      headers: { "X-Requested-With": "fetch" },
      signal: stop.signal,
    });
    if (answer.status !== 200) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-card-diff]");
    if (!fresh || !place.isConnected) return;
    place.replaceChildren(...fresh.childNodes);
    const label = document.querySelector("[data-send-label]");
    const told = page.querySelector("[data-send-label]");
    if (label && told) label.textContent = told.textContent;
  } catch {}
}

function compareSoon(form) {
  clearTimeout(timers.get(form));
  timers.set(form, setTimeout(() => compare(form), PAUSE));
}

// What is sent says itself what it changes.
document.addEventListener("submit", (event) => {
  clearTimeout(timers.get(event.target));
  running.get(event.target)?.abort();
}, true);

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.matches("[data-card-form]")) return;
  if (event.target.matches("textarea")) fit(event.target);
  if (event.target.matches("[data-json]")) checkJson(event.target);
  if (!event.target.matches("[data-card-reshape]")) compareSoon(form);
});

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-card-form]") && event.target.matches("[data-card-reshape]")) refresh(form);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey) || event.isComposing) return;
  const form = event.target.closest?.("form[data-card-form]");
  if (!form) return;
  const send = [...form.elements].find((control) => control.matches("[data-send]"));
  if (!send || send.disabled) return;
  event.preventDefault();
  form.requestSubmit(send);
});
