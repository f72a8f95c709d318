// The pane that holds one card. Fetches it again when it moved on, unless the reader is writing: then only its
// state strip changes and the form is locked, with the text kept. Asks before a draft is left.
// Hooks: [data-pane], [data-card][data-version][data-pane-url], form[data-draft], [data-card-state][data-locks].

const words = document.getElementById("words")?.dataset ?? {};
const pane = document.querySelector("[data-pane]");
const quiet = new WeakSet(); // requests of the pane itself: nobody asked, so the focus stays where it is
let drafted = false;

function card() {
  return pane?.querySelector("[data-card]");
}

function skeleton() {
  const template = document.getElementById("card-skeleton");
  return template ? template.content.cloneNode(true) : null;
}

function lock(form, locked) {
  for (const field of form.elements) {
    if (field.type !== "hidden") field.disabled = locked;
  }
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
    if ("locks" in state.dataset) lock(form, true);
    open.dataset.version = state.dataset.version;
    return;
  }
  open.dataset.version = state.dataset.version;
  refetch(open);
}

function refetch(open) {
  htmx.ajax("GET", open.dataset.paneUrl, { target: "#pane", swap: "innerMorph", source: "#pane" });
}

// What the pane asked for by itself comes too late when the reader has gone on meanwhile: to another card, or to writing.
function isLate(ctx) {
  return ctx?.sourceElement === pane && (isEditing() || card()?.dataset.paneUrl !== ctx.request.action);
}

function mayLeave() {
  return !drafted || confirm(words.sayLeave);
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

  // Keep the old card for 200 ms, then show the layout of the next one.
  function wait(ctx) {
    const before = [...pane.childNodes];
    let bones = [];
    const timer = setTimeout(() => {
      bones = [...(skeleton()?.childNodes ?? [])];
      if (bones.length) pane.replaceChildren(...bones);
    }, 200);
    document.addEventListener("htmx:finally:request", function end(event) {
      if (event.detail.ctx !== ctx) return;
      document.removeEventListener("htmx:finally:request", end);
      clearTimeout(timer);
      // Nothing came: the card that stood here is still the last that is known.
      if (bones.length && bones.every((bone) => bone.parentNode === pane)) pane.replaceChildren(...before);
    });
  }

  document.addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    if (ctx?.target !== pane || !ctx.response) return;
    // A form that came back, with its errors or one field more, still holds what the reader wrote.
    drafted = ctx.request.method === "POST" && Boolean(pane.querySelector("form[data-draft]:not([data-auto])"));
    if (quiet.has(ctx)) return;
    const form = pane.querySelector("form[data-draft]:not([data-auto])");
    const field = form?.querySelector("input:not([type=hidden]), textarea, select");
    const wanted = ["[data-focus]", "[autofocus]", "[data-first]"].map((hook) => pane.querySelector(hook)).find(Boolean);
    const first = wanted ?? field ?? pane.querySelector("[data-card-title]");
    // htmx has put the focus on [autofocus] already, and the reader may have gone on from there.
    if (!first?.matches("[autofocus]")) first?.focus({ preventScroll: true });
    (first?.matches("[data-focus], [autofocus]") ? first : form)?.scrollIntoView({ block: "nearest" });
  });
}
