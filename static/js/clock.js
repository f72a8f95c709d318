// Keeps times true while a page stays open. Hooks: time[data-ago], .due[data-due][data-asked], [data-claim-until].
// Words come from #words, so that they are translated with the page.

const words = document.getElementById("words")?.dataset ?? {};
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const fill = (pattern, n) => (pattern ?? "").replace("{n}", n);

function agoWords(age) {
  if (age < MINUTE) return words.sayJustNow;
  if (age < HOUR) return fill(words.sayMinAgo, Math.floor(age / MINUTE));
  return null; // over an hour the server's clock time or date stays right
}

function leftWords(left) {
  if (left <= 0) return words.sayOverdue;
  if (left < MINUTE) return words.sayMinuteLeft;
  if (left < 90 * MINUTE) return fill(words.sayMinLeft, Math.floor(left / MINUTE));
  if (left < 2 * DAY) return fill(words.sayHoursLeft, Math.round(left / HOUR));
  return fill(words.sayDaysLeft, Math.floor(left / DAY));
}

function setText(node, text) {
  if (text && node.textContent !== text) node.textContent = text;
}

function tickAges(now) {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    setText(time, agoWords(now - Date.parse(time.dateTime)));
  }
}

function tickDeadlines(now) {
  for (const due of document.querySelectorAll("[data-due]")) {
    const deadline = Date.parse(due.dataset.due);
    const left = deadline - now;
    setText(due.querySelector("[data-due-words]"), leftWords(left));
    const span = due.dataset.asked ? deadline - Date.parse(due.dataset.asked) : HOUR;
    const share = Math.round(100 * Math.max(0, Math.min(1, left / span)));
    due.querySelector("circle + circle")?.setAttribute("stroke-dasharray", `${share} 100`);
    const tone = left < 5 * MINUTE ? "danger" : left < 15 * MINUTE ? "warn" : "";
    if (tone) due.dataset.tone = tone;
    else delete due.dataset.tone;
  }
}

function tickClaims(now) {
  for (const claim of document.querySelectorAll("[data-claim-until]")) {
    const left = Math.max(0, Math.round((Date.parse(claim.dataset.claimUntil) - now) / 1000));
    setText(claim, `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
    if (left === 0 && !claim.dataset.ended) {
      claim.dataset.ended = "";
      claim.dispatchEvent(new CustomEvent("countersign:claim-ended", { bubbles: true }));
    }
  }
}

function tickSlowly() {
  const now = Date.now();
  tickAges(now);
  tickDeadlines(now);
}

setInterval(tickSlowly, 15_000);
setInterval(() => tickClaims(Date.now()), 1_000);
document.addEventListener("visibilitychange", tickSlowly);
document.addEventListener("htmx:after:swap", tickSlowly);
tickSlowly();
