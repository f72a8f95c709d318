// The shell of every page: theme, dialogs, menus, folds, copy buttons, and what to say when a request fails.
// Hooks: data-theme-toggle, data-dialog="id", details[data-menu], data-fold, data-copy, data-announce.

const root = document.documentElement;
const words = document.getElementById("words")?.dataset ?? {};

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function toggleTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // Storage is off: the choice lasts for this page.
  }
}

function announce(text) {
  const region = document.querySelector("[data-announce]");
  if (region) region.textContent = text;
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (menu !== except) menu.open = false;
  }
}

function toggleFold(button) {
  const fold = document.getElementById(button.getAttribute("aria-controls"));
  if (!fold) return;
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  fold.classList.toggle("fold", !open);
  [button.textContent, button.dataset.fold] = [button.dataset.fold, button.textContent];
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    announce(words.sayCopied);
    button.dataset.copied = "";
    setTimeout(() => delete button.dataset.copied, 1200);
  } catch {
    // The browser refused the clipboard; the text stays selectable beside the button.
  }
}

addEventListener("click", (event) => {
  closeMenus(event.target.closest("details[data-menu]"));
  if (event.target.closest("[data-theme-toggle]")) toggleTheme();
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
  const fold = event.target.closest("[data-fold]");
  if (fold) toggleFold(fold);
  const copier = event.target.closest("[data-copy]");
  if (copier) copy(copier);
  if (event.target.closest(".rail a") && location.hash === "#rail") location.hash = "";
});

addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
  event.stopPropagation();
});

// A press takes its time: the button keeps its width, says that it is busy and takes no second press.
addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || event.defaultPrevented) return;
  if (button.getAttribute("aria-busy") === "true") {
    event.preventDefault();
    event.stopImmediatePropagation(); // htmx listens, too
    return;
  }
  if (event.target.method !== "dialog" && !event.target.target) button.setAttribute("aria-busy", "true");
}, true);

document.addEventListener("htmx:finally:request", (event) => {
  const { request, sourceElement } = event.detail.ctx;
  request?.submitter?.removeAttribute("aria-busy");
  sourceElement?.removeAttribute?.("aria-busy");
});

addEventListener("pageshow", () => {
  for (const busy of document.querySelectorAll('[aria-busy="true"]')) busy.removeAttribute("aria-busy");
});

// A server that broke, or a page to sign in on, must not take the card's place: say so, and keep what is on the page.
document.addEventListener("htmx:before:swap", (event) => {
  const { response } = event.detail.ctx ?? {};
  if (!response || !(response.raw?.redirected || response.status >= 500)) return;
  event.preventDefault();
  const text = response.raw?.redirected ? words.saySignedOut : words.sayFailed;
  announce(text);
  showProblem(text);
});

document.addEventListener("htmx:error", (event) => {
  if (!event.detail.ctx) return;
  announce(words.sayFailed);
  showProblem(words.sayFailed);
});

document.addEventListener("htmx:before:request", () => {
  for (const problem of document.querySelectorAll("[data-problem]")) problem.hidden = true;
});

function showProblem(text) {
  const problem = document.querySelector("[data-problem]");
  if (!problem) return;
  problem.querySelector("[data-problem-text]").textContent = text;
  problem.hidden = false;
}

// The first error summary on a page that came back takes the focus.
document.querySelector("[data-focus]")?.focus();
