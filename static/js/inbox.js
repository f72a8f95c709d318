// The list: which row is open, what waits behind "3 new", how many wait. The list never moves by itself: rows
// that came or changed group are put in their place only on J, K, a click on the bar, or when nothing is open.

const words = document.getElementById("words")?.dataset ?? {};
const inbox = document.querySelector("[data-inbox]");
const plainTitle = document.title;

if (inbox) {
  const list = inbox.querySelector("[data-list]");
  const arrivals = inbox.querySelector("[data-arrivals]");
  const bar = inbox.querySelector("[data-reveal]");
  let lastAnnounced = 0;

  const waitingRows = () => [...list.querySelectorAll("[data-row]:not([data-closed])")];

  function count() {
    for (const group of list.querySelectorAll("section[data-group]")) {
      const rows = group.querySelectorAll("[data-row]");
      group.hidden = rows.length === 0;
      const open = [...rows].filter((row) => !("closed" in row.dataset)).length;
      group.querySelector("[data-count]").textContent = open;
    }
    const waiting = inbox.querySelector("[data-waiting]");
    if (waiting) waiting.textContent = words.sayWaiting.replace("{n}", waitingRows().length);
    const fresh = arrivals.children.length;
    bar.hidden = fresh === 0;
    if (fresh) bar.querySelector("[data-reveal-word]").textContent = fresh === 1 ? words.sayNewOne : words.sayNewMany.replace("{n}", fresh);
    document.title = fresh ? `(${fresh}) ${plainTitle}` : plainTitle;
  }

  function put(row) {
    const group = list.querySelector(`section[data-group="${CSS.escape(row.dataset.group)}"] > ul`);
    if (!group) return;
    const next = [...group.children].find((other) => Number(other.dataset.order) > Number(row.dataset.order));
    if (row.parentElement !== group || row.nextElementSibling !== (next ?? null)) group.insertBefore(row, next ?? null);
  }

  function reveal() {
    const rows = [...list.querySelectorAll("[data-row]")];
    for (const row of rows) {
      if ("closed" in row.dataset) row.remove();
      else put(row);
    }
    count();
  }

  function announce() {
    const now = Date.now();
    if (now - lastAnnounced < 10_000) return;
    lastAnnounced = now;
    const row = arrivals.lastElementChild;
    const region = document.querySelector("[data-announce-politely]");
    if (row && region) region.textContent = row.dataset.spoken;
  }

  function settle() {
    if (arrivals.children.length) announce();
    // Nothing is open and nothing is under the pointer: the first task may come in at once.
    const zero = inbox.querySelector("[data-zero]");
    if (zero && arrivals.children.length) {
      reveal();
      list.querySelector("[data-row] .task")?.click();
    }
    count();
  }

  function mark() {
    const open = document.querySelector("#pane [data-card]")?.dataset.card;
    for (const link of list.querySelectorAll(".task")) {
      if (link.dataset.task === open) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  document.addEventListener("countersign:pushed", settle);
  document.addEventListener("countersign:reveal", reveal);
  bar.addEventListener("click", () => {
    reveal();
    list.querySelector("[data-row] .task")?.focus();
  });
  inbox.addEventListener("click", (event) => {
    const link = event.target.closest(".task");
    if (link && !event.metaKey && !event.ctrlKey) inbox.dataset.open = "";
  });
  document.addEventListener("htmx:after:swap", () => {
    mark();
    count();
  });
  mark();
  count();
}
