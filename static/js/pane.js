// The pane that holds one card. Fetches it again when it moved on, unless the reader is writing: then only its
// state strip changes and the form is locked, with the text kept. Asks before a draft is left.
// Three kinds of requests: quiet ones of the pane itself; the reader's for a card, of which only the last counts; and
// a form on its way, beside which there is no other.
// Hooks: [data-pane], [data-card][data-version][data-pane-url], form[data-draft], [data-card-state][data-locks],
// [data-kept] (text of the reader on a card that takes it no longer).

const words = document.getElementById("words")?.dataset ?? {};
const pane = document.querySelector("[data-pane]");
const quiet = new WeakSet(); // requests of the pane itself: nobody asked, so the focus stays where it is
const WRITES_NOTHING = /^(claim|release|refresh|show|uncover|raw|form)\b/; // operations of a form
const BY_OUR_CLOCK = 1500; // milliseconds that the server's clock may be behind when a claim runs out

let drafted = false; // the reader wrote something that is not sent
let wasDrafted = false; // the same, when the request that is under way began
let awaited = null; // the last request for a card
let sending = null; // the request of the form that is on its way
let pressed = null; // the link that was pressed meanwhile
let missed = false; // a push came that could not be shown meanwhile
let isNative = false; // the browser sends a form without htmx
let heldField = ""; // the name of the field that had the focus
let shown = card()?.dataset.card; // the task whose card the reader looks at
let stood = []; // what the pane held before the skeleton, while that is shown
let stoodFocus = null;
let skeletonTimer = 0;

function card() {
  return pane?.querySelector("[data-card]");
}

function draft() {
  return pane.querySelector("form[data-draft]");
}

function skeleton() {
  const template = document.getElementById("card-skeleton");
  return template ? template.content.cloneNode(true) : null;
}

// Keep the old card for 200 ms, then show the layout of the next one.
function wait(ctx) {
  stopWaiting();
  awaited = ctx;
  skeletonTimer = setTimeout(() => {
    const bones = skeleton();
    if (!bones) return;
    stoodFocus = pane.contains(document.activeElement) ? document.activeElement : null;
    stood = [...pane.childNodes];
    pane.replaceChildren(bones);
  }, 200);
}

// Where nothing came, the card that stood here is still the last that is known.
function stopWaiting() {
  clearTimeout(skeletonTimer);
  if (!stood.length) return;
  pane.replaceChildren(...stood);
  stoodFocus?.focus({ preventScroll: true });
  stood = [];
}

// Takes back only what it did itself: some buttons are off for a reason of their own.
function lock(form, locked) {
  if (locked && form.contains(document.activeElement)) pane.querySelector("[data-card-title]")?.focus({ preventScroll: true });
  for (const field of form.elements) {
    if (field.type === "hidden" || field.disabled !== ("locked" in field.dataset)) continue;
    field.disabled = locked;
    field.toggleAttribute("data-locked", locked);
  }
}

function isLocked(form) {
  return [...form.elements].some((field) => "locked" in field.dataset);
}

// The server draws the form again with what was typed, for the claim as it is now.
function reopen(form) {
  const button = document.querySelector(`button[form="${form.id}"][value="refresh"]`);
  lock(form, false);
  if (button) form.requestSubmit(button);
}

// Beside the list the pane scrolls, on a phone the whole page.
function toTop() {
  pane.scrollTop = 0;
  scrollTo(0, 0);
}

// A form that the reader opened is left alone even while it is empty; one that every card of its kind shows is not.
function isEditing() {
  const form = draft();
  return drafted || Boolean(form && !("auto" in form.dataset));
}

function follow() {
  const open = card();
  if (stood.length) missed = true; // its strip is not on the page now
  if (awaited || sending) return;
  if (pane && !draft() && !pane.querySelector("[data-kept]")) drafted = false; // its card was taken away
  const state = pane?.querySelector("[data-card-state]");
  if (!open || !state || Number(state.dataset.version) <= Number(open.dataset.version)) return;
  open.dataset.version = state.dataset.version;
  const form = draft();
  if (!isEditing()) refetch(open);
  else if (form && "locks" in state.dataset) lock(form, true);
  else if (form && isLocked(form)) reopen(form);
}

function refetch(open) {
  htmx.ajax("GET", open.dataset.paneUrl, { target: "#pane", swap: "innerMorph", source: "#pane" });
}

// A card comes too late when the reader went on meanwhile: to another one, to sending, or to writing.
function isLate(ctx) {
  if (ctx?.sourceElement === pane) return Boolean(sending) || isEditing() || card()?.dataset.paneUrl !== ctx.request.action;
  if (ctx?.target !== pane || ctx === sending) return false;
  return ctx !== awaited || drafted;
}

function refuse(event) {
  if (event.detail.ctx.sourceElement === pane && (sending || awaited)) missed = true;
  event.preventDefault();
}

// A draft that its writer left, or sent, counts until something came in its place.
function remember() {
  wasDrafted = drafted || (Boolean(awaited) && wasDrafted);
}

function mayLeave() {
  if (drafted && !confirm(words.sayLeave)) return false;
  remember();
  drafted = false;
  return true;
}

// What is typed into a form that is on its way would be lost with its answer.
function send(ctx) {
  remember();
  stopWaiting();
  awaited?.request.abort?.();
  awaited = null;
  sending = ctx;
  const held = document.activeElement;
  heldField = held?.form === ctx.sourceElement && held.name !== "_op" ? held.name : "";
  if (ctx.request.submitter?.name !== "_op") drafted = false;
  ctx.sourceElement.inert = true;
}

function fieldThatHadFocus() {
  const named = [...(draft()?.elements ?? [])].filter(({ name }) => heldField && name === heldField);
  return named.find((field) => field.checked) ?? named[0];
}

function hasFailed(ctx) {
  return !ctx.response || ctx.response.status >= 500 || ctx.response.raw.redirected;
}

function goOn() {
  const open = card();
  if (missed && open && !isEditing()) refetch(open);
  else follow();
  missed = false;
  const link = pressed;
  pressed = null;
  if (link?.isConnected) link.click();
  else if (link) pane.querySelector(`a[href="${CSS.escape(link.getAttribute("href"))}"]`)?.click(); // the same, drawn again
}

function isWritten(ctx) {
  const { form, submitter } = ctx.request;
  if (ctx.request.method !== "POST" || !form?.id || draft()?.id !== form.id) return false;
  return wasDrafted || (submitter?.name === "_op" && !WRITES_NOTHING.test(submitter.value));
}

if (pane) {
  document.addEventListener("countersign:pushed", follow);
  document.addEventListener("countersign:claim-ended", () => {
    const open = card();
    const form = draft();
    if (open && !isEditing()) refetch(open);
    else if (form && isLocked(form)) setTimeout(() => {
      if (form.isConnected && isLocked(form) && !sending && !awaited) reopen(form);
    }, BY_OUR_CLOCK);
  });
  pane.addEventListener("input", (event) => {
    if (event.target.closest("form[data-draft]")) drafted = true;
  });
  addEventListener("beforeunload", (event) => {
    if (drafted && !isNative) event.preventDefault();
    isNative = false;
  });
  pane.addEventListener("submit", (event) => {
    isNative = !event.defaultPrevented; // htmx, which listens on the form, has prevented what it sends itself
  });

  // Refused before htmx queues it: out of the queue it would be sent by a form that is gone.
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = event.detail;
    if (!sending || ctx.target !== pane || ctx.sourceElement === pane) return;
    if (ctx.request.method !== "POST") pressed = ctx.sourceElement;
    else if (ctx.request.submitter !== sending.request.submitter) ctx.request.submitter?.removeAttribute("aria-busy");
    event.preventDefault();
  });

  document.addEventListener("htmx:before:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.target !== pane) return;
    if (ctx.sourceElement === pane) {
      quiet.add(ctx);
      if (isLate(ctx)) refuse(event);
      return;
    }
    const isForm = ctx.request.method === "POST" && ctx.sourceElement.matches("form");
    if (sending || !ctx.sourceElement.isConnected) event.preventDefault();
    else if (isForm) send(ctx);
    else if (mayLeave()) wait(ctx);
    else event.preventDefault();
  });

  // The answer is here: its skeleton comes too late. htmx goes on only after a timer of its own, and one that is
  // due in between would put the skeleton, and then the old card, in the new one's place.
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx } = event.detail;
    if (isLate(ctx)) refuse(event);
    else if (ctx && ctx === awaited) clearTimeout(skeletonTimer);
  });

  // Before anybody else hears of it: what is said of the failure is said on the card.
  for (const moment of ["htmx:error", "htmx:after:request", "htmx:finally:request"]) {
    document.addEventListener(moment, ({ detail: { ctx } }) => {
      const isOver = moment !== "htmx:after:request" || hasFailed(ctx) || ctx.response.status >= 400;
      if (ctx && ctx === awaited && isOver) stopWaiting();
    }, true);
  }

  document.addEventListener("htmx:finally:request", (event) => {
    const { ctx } = event.detail;
    if (ctx !== awaited && ctx !== sending) return;
    if (hasFailed(ctx)) drafted = drafted || wasDrafted;
    if (ctx === sending) {
      ctx.sourceElement.inert = false;
      if (hasFailed(ctx)) fieldThatHadFocus()?.focus({ preventScroll: true });
    }
    awaited = sending = null;
    if (hasFailed(ctx) || ctx.response.status >= 400) pressed = null; // first the reader has to hear of that
    goOn();
  });

  document.addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    if (ctx?.target !== pane || !ctx.response || quiet.has(ctx)) return;
    stood = [];
    missed = false;
    drafted = isWritten(ctx) || Boolean(pane.querySelector("[data-kept]"));
    if (card()?.dataset.card !== shown) toTop();
    shown = card()?.dataset.card;
    const form = pane.querySelector("form[data-draft]:not([data-auto])");
    const again = ctx === sending ? fieldThatHadFocus() : undefined;
    const field = form?.querySelector("input:not([type=hidden]), textarea, select");
    const wanted = ["[data-focus]", "[autofocus]"].map((hook) => pane.querySelector(hook)).find(Boolean);
    const first = wanted || again || pane.querySelector("[data-first]") || field || pane.querySelector("[data-card-title]");
    const isAgain = Boolean(again) && first === again;
    // htmx has put the focus on [autofocus] already, and the reader may have gone on from there.
    if (!first?.matches("[autofocus]")) first?.focus({ preventScroll: true });
    if (isAgain && first.matches("textarea, input[type=text]")) first.setSelectionRange(first.value.length, first.value.length);
    (first?.matches("[data-focus], [autofocus]") || isAgain ? first : form)?.scrollIntoView({ block: "nearest" });
  });
}
