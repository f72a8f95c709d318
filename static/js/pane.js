// The pane that holds one card. Fetches it again when it moved on, unless the reader is writing: then only its
// state strip changes and the form is locked, with the text kept. Asks before a draft is left.
// Hooks: [data-pane], [data-card][data-version][data-pane-url], form[data-draft], [data-card-state][data-locks].

const words = document.getElementById("words")?.dataset ?? {};
const pane = document.querySelector("[data-pane]");
const quiet = new WeakSet(); // requests of the pane itself: nobody asked, so the focus stays where it is
let drafted = false;
let awaited = null; // the request whose card the reader waits for
let skeletonTimer = 0;
let shown = card()?.dataset.card; // the task whose card the reader looks at
let stood = []; // what the pane held before the skeleton, while that is shown

function card() {
  return pane?.querySelector("[data-card]");
}

function skeleton() {
  const template = document.getElementById("card-skeleton");
  return template ? template.content.cloneNode(true) : null;
}

// Keep the old card for 200 ms, then show the layout of the next one.
function wait(ctx) {
  clearTimeout(skeletonTimer);
  awaited = ctx;
  skeletonTimer = setTimeout(() => {
    const bones = skeleton();
    if (!bones || stood.length) return;
    stood = [...pane.childNodes];
    pane.replaceChildren(bones);
  }, 200);
}

// Where nothing came, the card that stood here is still the last that is known.
function stopWaiting() {
  clearTimeout(skeletonTimer);
  awaited = null;
  if (stood.length) pane.replaceChildren(...stood);
  stood = [];
}

// Takes back only what it did itself: some buttons are off for a reason of their own.
function lock(form, locked) {
  for (const field of form.elements) {
    if (field.type === "hidden" || field.disabled !== ("locked" in field.dataset)) continue;
    field.disabled = locked;
    field.toggleAttribute("data-locked", locked);
  }
}

// Beside the list the pane scrolls, on a phone the whole page.
function toTop() {
  pane.scrollTop = 0;
  scrollTo(0, 0);
}

// A form that the reader opened is left alone even while it is empty; one that every card of its kind shows is not.
function isEditing() {
  const form = pane.querySelector("form[data-draft]");
  return Boolean(form) && (drafted || !("auto" in form.dataset));
}

function follow() {
  const open = card();
  const state = pane?.querySelector("[data-card-state]");
  if (!open || !state || Number(state.dataset.version) <= Number(open.dataset.version)) return;
  if (isEditing()) {
    const form = pane.querySelector("form[data-draft]");
    lock(form, "locks" in state.dataset);
    open.dataset.version = state.dataset.version;
    return;
  }
  open.dataset.version = state.dataset.version;
  refetch(open);
}

function refetch(open) {
  htmx.ajax("GET", open.dataset.paneUrl, { target: "#pane", swap: "innerMorph", source: "#pane" });
}

// A card comes too late when the reader began to write meanwhile; one that the pane asked for by itself also when
// they went on to another.
function isLate(ctx) {
  if (ctx?.sourceElement === pane) return isEditing() || card()?.dataset.paneUrl !== ctx.request.action;
  return Boolean(ctx) && ctx === awaited && drafted;
}

function mayLeave() {
  if (drafted && !confirm(words.sayLeave)) return false;
  drafted = false;
  return true;
}

if (pane) {
  document.addEventListener("countersign:pushed", follow);
  document.addEventListener("countersign:claim-ended", () => {
    const open = card();
    if (open && !isEditing()) refetch(open);
  });
  pane.addEventListener("input", (event) => {
    if (event.target.closest("form[data-draft]")) drafted = true;
  });
  addEventListener("beforeunload", (event) => {
    if (drafted) event.preventDefault();
  });
  pane.addEventListener("submit", (event) => {
    if (event.submitter?.name !== "_op") drafted = false;
  });

  for (const moment of ["htmx:before:request", "htmx:before:swap"]) {
    document.addEventListener(moment, (event) => {
      if (isLate(event.detail.ctx)) event.preventDefault();
    });
  }

  document.addEventListener("htmx:before:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.target !== pane) return;
    if (ctx.sourceElement === pane) quiet.add(ctx);
    const isSending = ctx.request.method === "POST" && ctx.sourceElement.matches("form");
    if (!isSending && !quiet.has(ctx) && !mayLeave()) {
      event.preventDefault();
      return;
    }
    if (!isSending && !quiet.has(ctx)) wait(ctx);
  });

  // The answer is here: its skeleton comes too late. htmx goes on only after a timer of its own, and one that is
  // due in between would put the skeleton, and then the old card, in the new one's place.
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.detail.ctx && event.detail.ctx === awaited) clearTimeout(skeletonTimer);
  });

  // Before anybody else hears of it: what is said of the failure is said on the card.
  for (const moment of ["htmx:error", "htmx:response:error", "htmx:finally:request"]) {
    document.addEventListener(moment, (event) => {
      if (event.detail.ctx && event.detail.ctx === awaited) stopWaiting();
    }, true);
  }

  document.addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    if (ctx?.target !== pane || !ctx.response) return;
    stood = [];
    // A form that came back, with its errors or one field more, still holds what the reader wrote.
    const sent = ctx.request.method === "POST" && ctx.request.form?.id;
    drafted = Boolean(sent) && pane.querySelector("form[data-draft]")?.id === sent;
    if (quiet.has(ctx)) return;
    if (card()?.dataset.card !== shown) toTop();
    shown = card()?.dataset.card;
    const form = pane.querySelector("form[data-draft]:not([data-auto])");
    const field = form?.querySelector("input:not([type=hidden]), textarea, select");
    const wanted = ["[data-focus]", "[autofocus]", "[data-first]"].map((hook) => pane.querySelector(hook)).find(Boolean);
    const first = wanted ?? field ?? pane.querySelector("[data-card-title]");
    // htmx has put the focus on [autofocus] already, and the reader may have gone on from there.
    if (!first?.matches("[autofocus]")) first?.focus({ preventScroll: true });
    (first?.matches("[data-focus], [autofocus]") ? first : form)?.scrollIntoView({ block: "nearest" });
  });
}
