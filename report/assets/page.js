"use strict";
// Theme, raw numbers, sorting, printing.
(() => {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("tierscope-theme") || ""; } catch { return ""; } };
  const store = v => { try { localStorage.setItem("tierscope-theme", v); } catch { /* a file without storage: the choice lasts as long as the page */ } };
  const theme = v => {
    if (v) root.dataset.theme = v; else delete root.dataset.theme;
    charts.redraw();
  };
  const choice = document.getElementById("theme");
  document.querySelector(".tools").hidden = false;
  const first = stored();
  if (first) {
    choice.querySelector(`[value="${first === "dark" ? "dark" : "light"}"]`).checked = true;
    theme(first);
  }
  choice.addEventListener("change", e => { store(e.target.value); theme(e.target.value); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", charts.redraw);

  // Paper is white: draw for it, and go back.
  let before;
  addEventListener("beforeprint", () => { before = root.dataset.theme || ""; theme("light"); });
  addEventListener("afterprint", () => theme(before));

  const raw = document.getElementById("raw");
  raw.addEventListener("click", () => {
    const on = raw.getAttribute("aria-pressed") !== "true";
    raw.setAttribute("aria-pressed", String(on));
    for (const cell of document.querySelectorAll("[data-value]:not([data-missing]):not(.missing)")) {
      const text = cell.querySelector(".text") || cell;
      if (text.dataset.text === undefined) text.dataset.text = text.textContent;
      const unit = cell.dataset.unit ? " " + cell.dataset.unit : "";
      text.textContent = on ? cell.dataset.value + unit : text.dataset.text;
    }
  });
  document.addEventListener("pointerover", e => {
    const cell = e.target.closest && e.target.closest("[data-value]");
    if (cell && cell.dataset.value !== "" && !cell.title) cell.title = cell.dataset.value + (cell.dataset.unit ? " " + cell.dataset.unit : "");
  });

  // A click or Enter on a heading sorts; missing cells stay at the end.
  const sort = th => {
    const table = th.closest("table"), body = table.tBodies[0], col = th.cellIndex;
    const number = th.classList.contains("num");
    const now = th.getAttribute("aria-sort");
    const down = now ? now === "ascending" : number;
    const key = row => row.cells[col].dataset.value;
    const missing = row => row.cells[col].hasAttribute("data-missing");
    const rows = [...body.rows];
    rows.sort((a, b) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      const x = toNumber(key(a)), y = toNumber(key(b));
      const c = number ? (x > y) - (x < y) : key(a).localeCompare(key(b), "en", { numeric: true });
      return down ? -c : c;
    });
    body.append(...rows);
    for (const h of table.tHead.rows[0].cells) h.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  const toNumber = s => (s === "+Inf" ? Infinity : s === "-Inf" ? -Infinity : Number(s));
  for (const b of document.querySelectorAll("thead th button")) b.addEventListener("click", () => sort(b.closest("th")));
})();
