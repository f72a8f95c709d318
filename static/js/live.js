// The socket's side of the page: says whether it is live, catches up after every connection, and puts what is
// pushed where it belongs. Rows that are known are updated in place; new rows wait hidden in [data-arrivals].
// Sends:   {"hello": {filter…}, "known": {task id: version}, "card": task id}   once per connection
//          {"card": task id}   when another card is opened, so that its state is pushed from then on
// Tells:   countersign:pushed (on document)
// Hook:    #socket[data-socket="/ws/…/"]

const root = document.documentElement;
const words = document.getElementById("words")?.dataset ?? {};
const SIGNED_OUT = 4401;
let lostSince = null;
let connected = null; // the socket of the last connection
let toldCard = "";

function say(state, word, tone) {
  root.dataset.live = state;
  for (const live of document.querySelectorAll(".live[data-live]")) {
    live.dataset.tone = tone;
    live.querySelector(".dot").classList.toggle("dot--live", state === "on");
    const text = live.querySelector("[data-live-word]");
    if (text.textContent !== word) text.textContent = word;
  }
  for (const strip of document.querySelectorAll(".state[data-lost]")) {
    strip.hidden = state !== "lost";
    strip.querySelector("[data-lost-word]").textContent = word;
  }
}

function lost() {
  lostSince ??= new Date();
  const clock = lostSince.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  say("lost", words.sayLost.replace("{n}", clock), "warn");
}

function shownCard() {
  return document.querySelector("[data-card]")?.dataset.card ?? "";
}

function hello(socket) {
  const list = document.querySelector("[data-inbox]");
  const known = {};
  for (const row of document.querySelectorAll("[data-row]")) known[row.id.slice(4)] = Number(row.dataset.version);
  toldCard = shownCard();
  socket.send(JSON.stringify({
    hello: list ? { view: list.dataset.view ?? "", queue: list.dataset.queue ?? "", query: list.dataset.query ?? "" } : null,
    known,
    card: toldCard,
  }));
}

document.addEventListener("htmx:ws:after:connection", (event) => {
  lostSince = null;
  say("on", words.sayLive, "ok");
  connected = event.detail.connection.socket;
  hello(connected);
});

document.addEventListener("htmx:ws:close", (event) => {
  if (event.detail.code === SIGNED_OUT) {
    location.reload(); // the server sends the reader to sign in, and back here afterwards
    return;
  }
  if (event.detail.reason !== "removed") lost();
});

// Connects only now, when everything that listens is in place: htmx itself starts whenever it likes.
function connect(socket) {
  socket.setAttribute("hx-ws:connect", socket.dataset.socket);
  htmx.process(socket);
}

addEventListener("click", (event) => {
  if (!event.target.closest("[data-reconnect]")) return;
  const old = document.getElementById("socket");
  const fresh = old.cloneNode();
  fresh.removeAttribute("data-htmx-powered");
  old.replaceWith(fresh);
  connect(fresh);
});

// A swap of a pane brings fresh copies of the indicator: tell them what is true now.
document.addEventListener("htmx:after:swap", () => {
  if (root.dataset.live === "on") say("on", words.sayLive, "ok");
  else if (root.dataset.live === "lost") lost();
  const card = shownCard();
  if (connected?.readyState !== WebSocket.OPEN || card === toldCard) return;
  toldCard = card;
  connected.send(JSON.stringify({ card }));
});

function isArrival(task) {
  return task.type === "partial" && task.target?.matches?.("[data-arrivals]");
}

// Turn a pushed row into an update where the page has it already.
function place(task) {
  const row = task.fragment.querySelector("[data-row]");
  if (!row) return;
  const here = document.getElementById(row.id);
  if (!here) return;
  const isOlder = Number(row.dataset.version) < Number(here.dataset.version);
  task.target = isOlder ? null : here;
  task.swapSpec = { style: "outerMorph" };
}

document.addEventListener("htmx:before:swap", (event) => {
  for (const task of event.detail.tasks ?? []) {
    if (isArrival(task)) place(task);
  }
});

document.addEventListener("htmx:ws:after:message:incoming", () => {
  document.dispatchEvent(new CustomEvent("countersign:pushed"));
});

const socket = document.getElementById("socket");
if (socket) {
  say("connecting", words.sayConnecting, "neutral");
  connect(socket);
}
