"use strict";
// The figures of the page, each from the JSON beside it.
(() => {
  const load = name => {
    const at = document.getElementById("data-" + name);
    return at && JSON.parse(at.textContent);
  };
  const place = name => document.querySelector(`[data-figure="${name}"]`);
  const steps = d => (d.last.length ? d.last[d.last.length - 1] + 1 : 1);
  const stepped = uPlot.paths.stepped({ align: 1, extend: true });
  const stepScale = d => ({ time: false, range: (u, lo, hi) => (lo === hi || lo == null ? [d.x[0], steps(d)] : hi >= d.x[d.x.length - 1] ? [lo, steps(d)] : [lo, hi]) });
  const stepAxis = () => charts.axis({ label: "step", size: 32, values: (u, v) => v.map(x => (Number.isInteger(x) ? format.count(x) : "")) });
  const where = d => i => {
    const span = d.phases.find(s => i < s.to);
    const name = d.last[i] > d.x[i] ? `steps ${format.count(d.x[i])} to ${format.count(d.last[i])}, mean` : `step ${format.count(d.x[i])}`;
    return name + (span.phase ? " · " + span.phase : "") + (d.token && d.token[i] != null ? " · token " + format.count(d.token[i]) : "");
  };
  const hint = "Point at the chart, or focus it and use the arrow keys. Drag to zoom, double-click to zoom out.";

  const traffic = (fig, d) => charts.make(fig, d, state => {
    const all = d[state.metric], shown = all.filter(s => !state.hidden.has(s.name));
    const log = state.scale === "log";
    const phase = i => d.phases.find(s => i < s.to).phase;
    const totals = d.x.map((_, i) => shown.reduce((sum, s) => sum + s.values[i], 0));
    let top = Math.max(0, ...(state.scale === "decode" ? totals.filter((_, i) => phase(i) === "decode") : totals)) * 1.12 || 1;
    const hooks = charts.phaseHooks(d, steps(d));
    let data, series, y, axis;
    if (log) {
      const range = charts.logScale(shown.map(s => s.values), 2) || [1, 2];
      y = { distr: 3, log: 2, range: () => range };
      data = [d.x, ...shown.map(s => charts.positive(s.values))];
      series = shown.map(s => ({ stroke: charts.color(s.class), width: 2, paths: stepped, points: { show: false } }));
      axis = charts.logAxis(2, 44, format.bytes, { size: 66 });
    } else {
      y = { range: () => [0, top] };
      // Drawn from the whole down, each over the one before.
      const sums = [], under = new Array(d.x.length).fill(0);
      for (const s of shown) sums.push(s.values.map((v, i) => (under[i] += v)));
      data = [d.x, ...sums.reverse()];
      series = shown.slice().reverse().map(s => ({ fill: charts.color(s.class), width: 0, paths: stepped, points: { show: false } }));
      axis = charts.bytesAxis();
      hooks.draw.push(u => {
        const ctx = u.ctx, r = devicePixelRatio;
        ctx.save();
        ctx.font = "600 " + 11 * r + "px " + getComputedStyle(document.body).fontFamily;
        ctx.textBaseline = "top";
        ctx.textAlign = "left";
        let free = 0;
        totals.forEach((t, i) => {
          if (t <= top) return;
          const x = u.valToPos(d.x[i], "x", true), text = "↑ " + format.bytes(t), size = ctx.measureText(text).width;
          if (x < Math.max(free, u.bbox.left - 1) || x + size + 8 * r > u.bbox.left + u.bbox.width) return;
          free = x + size + 16 * r;
          ctx.fillStyle = charts.color("page");
          ctx.fillRect(x + 5 * r, u.bbox.top + 3 * r, size + 6 * r, 15 * r);
          ctx.fillStyle = charts.color("ink");
          ctx.fillText(text, x + 8 * r, u.bbox.top + 5 * r);
        });
        ctx.restore();
      });
    }
    return {
      opts: { scales: { x: stepScale(d), y }, axes: [stepAxis(), axis], series: [{}, ...series], hooks }, data, hint,
      at: i => where(d)(i) + " · " + format.bytes(totals[i]),
      items: all.map(s => ({ name: s.name, label: s.label, cls: s.class, value: i => format.bytes(s.values[i]) })),
    };
  });

  const kv = (fig, d) => charts.make(fig, d, state => {
    const shown = d.lines.filter(s => !state.hidden.has(s.name));
    const top = Math.max(0, ...shown.flatMap(s => s.values)) * 1.05 || 1;
    const dash = s => charts.dashes[d.lines.indexOf(s)];
    const series = shown.map(s => ({ stroke: charts.color(s.class), width: 2, dash: dash(s), paths: stepped, points: { show: false } }));
    return {
      opts: { scales: { x: stepScale(d), y: { range: () => [0, top] } }, axes: [stepAxis(), charts.bytesAxis()], series: [{}, ...series], hooks: charts.phaseHooks(d, steps(d)) },
      data: [d.x, ...shown.map(s => s.values)], hint,
      at: i => where(d)(i) + (d.cells[i] == null ? "" : " · " + format.count(d.cells[i]) + " cells in use"),
      items: d.lines.map(s => ({ name: s.name, label: s.label, cls: s.class, dash: dash(s), value: i => format.bytes(s.values[i]) })),
    };
  });

  const lifetimes = (fig, d) => charts.make(fig, d, state => {
    const all = d[state.view], shown = all.filter(s => !state.hidden.has(s.name)), share = state.view === "share";
    const range = share ? [0, 1.02] : charts.logScale(shown.map(s => s.values), 2) || [1, 2];
    const dash = s => charts.dashes[all.indexOf(s) % charts.dashes.length];
    const lo = d.x[0], hi = d.x[d.x.length - 1] > lo ? d.x[d.x.length - 1] : lo * 10;
    const series = shown.map(s => ({ stroke: charts.color(s.class), width: 2, dash: dash(s), paths: stepped, points: { show: false } }));
    return {
      opts: {
        padding: [10, 12, 0, 0],
        scales: { x: { time: false, distr: 3, log: 10, range: (u, a, b) => (a == null || a >= b ? [lo, hi] : [a, b]) }, y: share ? { range: () => range } : { distr: 3, log: 2, range: () => range } },
        axes: [charts.logAxis(10, 70, format.seconds, { label: "lifetime", size: 32 }),
          share ? charts.axis({ size: 66, values: (u, v) => v.map(format.tick(format.share)) }) : charts.logAxis(2, 44, format.bytes, { size: 66 })],
        series: [{}, ...series],
      },
      data: [d.x, ...shown.map(s => (share ? s.values : charts.positive(s.values)))], hint,
      at: i => (share ? "at most " + format.seconds(d.x[i]) : i + 1 < d.x.length ? format.seconds(d.x[i]) + " to " + format.seconds(d.x[i + 1]) : format.seconds(d.x[i])),
      items: all.map(s => ({ name: s.name, label: s.label, cls: s.class, dash: dash(s), value: i => (share ? format.share : format.bytes)(s.values[i]) })),
    };
  });

  for (const [name, draw] of Object.entries({ traffic_by_token: traffic, kv_growth: kv, lifetimes })) {
    const d = load(name);
    if (d) draw(place(name), d);
  }
})();
