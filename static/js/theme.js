// Runs before the first paint, so that a chosen theme never flashes. Everything else waits in modules.
(() => {
  const root = document.documentElement;
  root.dataset.js = "";
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch {
    // Storage is off: the system's theme stays.
  }
})();
