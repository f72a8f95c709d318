// A run's page while the run works: text as it is written, and folds of the state that stay as the reader left them.
// Takes: {"tokens": [[message id, text], …]} from the run's socket. Hooks: #run-output [data-output], [data-message],
// #run-status[data-status], details[data-path].

const panel = document.getElementById("run-output");
const output = panel.querySelector("[data-output]");
const texts = new Map(); // message id -> its paragraph
let waiting = [];
let openPaths = [];

function isToldAbove(id) {
  return document.querySelector(`#run-timeline [data-message="${CSS.escape(id)}"]`) !== null;
}

function paragraphOf(id) {
  if (!texts.has(id)) {
    const paragraph = document.createElement("p");
    output.append(paragraph);
    texts.set(id, paragraph);
  }
  return texts.get(id);
}

function isAtTheEnd() {
  return output.scrollHeight - output.scrollTop - output.clientHeight < 24;
}

// One paint for all the text that came since the last one.
function write() {
  const follows = isAtTheEnd();
  for (const [id, text] of waiting) {
    if (!isToldAbove(id)) paragraphOf(id).append(text);
  }
  waiting = [];
  showCaret();
  if (follows) output.scrollTop = output.scrollHeight;
}

function showCaret() {
  output.querySelector(".caret")?.remove();
  panel.hidden = texts.size === 0;
  if (panel.hidden) return;
  const caret = document.createElement("span");
  caret.className = "caret";
  [...texts.values()].at(-1).append(caret);
}

// What the timeline tells in full, and what a run left behind that works no longer, need no second place.
function tidy() {
  const works = document.getElementById("run-status")?.dataset.status === "running";
  for (const [id, paragraph] of texts) {
    if (works && !isToldAbove(id)) continue;
    paragraph.remove();
    texts.delete(id);
  }
  showCaret();
}

document.addEventListener("htmx:ws:after:message:incoming", async (event) => {
  const { message } = event.detail;
  if (!message.data.startsWith('{"tokens"')) return;
  const { tokens } = await message.json();
  if (waiting.length === 0) requestAnimationFrame(write);
  waiting.push(...tokens);
});

function folds() {
  return document.querySelectorAll("details[data-path]");
}

document.addEventListener("htmx:before:swap", () => {
  openPaths = [...folds()].filter((fold) => fold.open).map((fold) => fold.dataset.path);
});

document.addEventListener("htmx:after:swap", () => {
  const open = new Set(openPaths);
  for (const fold of folds()) if (open.has(fold.dataset.path)) fold.open = true;
  tidy();
});
