"use strict";
// How sizes, times and counts are written: the same rules as for the cells.
const format = (() => {
  const thousands = s => {
    const [whole, frac] = s.replace("-", "").split(".");
    return (s.startsWith("-") ? "−" : "") + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (frac === undefined ? "" : "." + frac);
  };
  const digits = (x, n) => {
    const a = Math.abs(x);
    if ((a !== 0 && a < 1e-4) || a >= 1e15) return x.toExponential(n - 1).replace("-", "−");
    const frac = a === 0 ? 0 : Math.max(0, n - 1 - Number(x.toExponential(n - 1).split("e")[1]));
    return thousands(x.toFixed(frac));
  };
  const bytes = x => {
    if (x == null) return "–";
    if (Math.abs(x) < 1024) return (Number.isInteger(x) ? thousands(String(x)) : digits(x, 3)) + " B";
    for (const unit of ["K", "M", "G", "T", "P", "E"]) {
      x /= 1024;
      if (Math.abs(x) < 1023.5 || unit === "E") return digits(x, 3) + " " + unit + "iB";
    }
  };
  const seconds = x => {
    if (x == null) return "–";
    const a = Math.abs(x);
    if (a === 0) return "0 s";
    if (a < 999.5e-9) return digits(x * 1e9, 3) + " ns";
    if (a < 999.5e-6) return digits(x * 1e6, 3) + " µs";
    if (a < 999.5e-3) return digits(x * 1e3, 3) + " ms";
    if (a < 120) return digits(x, 3) + " s";
    if (a < 7200) return digits(x / 60, 3) + " min";
    return digits(x / 3600, 3) + " h";
  };
  const share = x => (x == null ? "–" : digits(Number((100 * x).toPrecision(6)), 3) + " %");
  const count = x => (x == null ? "–" : Number.isInteger(x) ? thousands(String(x)) : digits(x, 4));
  // Ticks are round numbers: 96 MiB, not 96.0; 100 µs, though 1e-9 * 1e5 is a bit more.
  const tick = f => x => f(Number(x.toPrecision(6))).replace(/\.(\d*?)0+(?= )/, (_, d) => (d ? "." + d : ""));
  return { bytes, seconds, share, count, tick };
})();
