"use strict";
// What all charts share: colours, scales, phases, legend, keyboard, redrawing.
const charts = (() => {
  const all = [];
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const color = name => {
    probe.style.color = "var(--" + name + ")";
    return getComputedStyle(probe).color;
  };
  const known = new Set(["prefill", "decode"]);
  const phaseColor = phase => (known.has(phase) ? phase : "otherphase");
  const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4]];

  const font = () => "12px " + getComputedStyle(document.body).fontFamily;
  const axis = extra => ({
    stroke: color("soft"), font: font(), labelFont: font(), labelSize: 20, labelGap: 0,
    grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("line"), width: 1, size: 4 }, ...extra,
  });
  const powers = Array.from({ length: 61 }, (_, i) => 2 ** i);

  // Linear scale of bytes from 0, ticks at powers of two times a small number.
  const bytesAxis = () => axis({ size: 66, space: 44, incrs: powers, values: (u, v) => v.map(format.tick(format.bytes)) });
  // Ticks of a log scale: powers of base, as many as fit.
  const logSplits = (base, room) => (u, i, min, max) => {
    const log = x => Math.log(x) / Math.log(base);
    const from = Math.ceil(log(min) - 1e-9), to = Math.floor(log(max) + 1e-9);
    const fit = Math.max(2, Math.floor((i === 0 ? u.bbox.width : u.bbox.height) / devicePixelRatio / room));
    const step = Math.max(1, Math.ceil((to - from + 1) / fit));
    const out = [];
    for (let k = from; k <= to; k += step) out.push(base ** k);
    return out;
  };
  const logAxis = (base, room, text, extra) =>
    axis({ splits: logSplits(base, room), filter: (u, s) => s, values: (u, v) => v.map(format.tick(text)), ...extra });
  const logScale = (values, base) => {
    let lo = Infinity, hi = 0;
    for (const v of values) for (const x of v) if (x > 0) { lo = Math.min(lo, x); hi = Math.max(hi, x); }
    if (hi === 0) return null;
    const log = x => Math.log(x) / Math.log(base);
    return [base ** Math.floor(log(lo)), base ** Math.max(Math.ceil(log(hi)), Math.floor(log(lo)) + 1)];
  };
  const positive = v => v.map(x => (x > 0 ? x : null));

  // A ribbon above the plot and a shade behind it say which phase a step is in.
  const phaseHooks = (d, end) => {
    const at = i => (i < d.x.length ? d.x[i] : end);
    const box = (u, s) => {
      const left = Math.max(u.bbox.left, u.valToPos(at(s.from), "x", true));
      const right = Math.min(u.bbox.left + u.bbox.width, u.valToPos(at(s.to), "x", true));
      return [left, Math.max(right - left, right >= u.bbox.left && left <= u.bbox.left + u.bbox.width ? 2 * devicePixelRatio : 0)];
    };
    return {
      drawClear: [u => {
        u.ctx.save();
        u.ctx.fillStyle = color("shade");
        for (const s of d.phases) {
          if (s.phase === "decode") continue;
          const [x, w] = box(u, s);
          u.ctx.fillRect(x, u.bbox.top, w, u.bbox.height);
        }
        u.ctx.restore();
      }],
      draw: [u => {
        const r = devicePixelRatio, ctx = u.ctx;
        ctx.save();
        ctx.font = 11 * r + "px " + getComputedStyle(document.body).fontFamily;
        ctx.textBaseline = "bottom";
        ctx.textAlign = "left";
        let free = 0;
        // Decode first, so that a prefill of one step among thousands is not covered.
        for (const s of [...d.phases].sort((a, b) => (b.phase === "decode") - (a.phase === "decode"))) {
          const [x, w] = box(u, s);
          ctx.fillStyle = color(phaseColor(s.phase));
          if (w > 0) ctx.fillRect(x, u.bbox.top - 8 * r, w, 5 * r);
        }
        for (const s of d.phases) {
          const [x, w] = box(u, s);
          if (w <= 0) continue;
          // A short phase may write past its end, a decode may not.
          const text = s.phase || "no phase", size = ctx.measureText(text).width, from = Math.max(x, free);
          const end = s.phase === "decode" ? x + w : u.bbox.left + u.bbox.width;
          if (from + size <= end && (from === x || s.phase === "decode")) {
            ctx.fillStyle = color("soft");
            ctx.fillText(text, from, u.bbox.top - 9 * r);
            free = from + size + 10 * r;
          }
        }
        ctx.restore();
      }],
    };
  };

  // make draws a figure. build(state, width) returns {opts, data, items, at}: items
  // are the entries of the legend, at(i) the words for a point.
  const make = (figure, d, build) => {
    const place = figure.querySelector(".chart"), legend = figure.querySelector(".legend");
    const state = { hidden: new Set() };
    const c = { figure, plot: null, view: null, state };
    for (const group of figure.querySelectorAll("[data-choice]")) {
      const read = () => { state[group.dataset.choice] = group.querySelector("input:checked").value; };
      read();
      group.addEventListener("change", () => { read(); c.draw(); });
    }
    figure.querySelector(".controls").hidden = figure.querySelector("[data-choice]") === null;
    const size = () => ({ width: Math.max(260, place.clientWidth), height: place.clientWidth < 520 ? 280 : 340 });
    const outputs = [];
    const say = i => {
      const v = c.view;
      legend.firstChild.textContent = i == null ? v.hint : v.at(i);
      v.items.forEach((item, k) => { outputs[k].textContent = i == null || state.hidden.has(item.name) ? "" : item.value(i); });
    };
    c.draw = () => {
      if (c.plot) c.plot.destroy();
      const v = (c.view = build(state, place.clientWidth));
      outputs.length = 0;
      legend.replaceChildren(Object.assign(document.createElement("span"), { className: "at" }));
      for (const item of v.items) {
        const entry = Object.assign(document.createElement("span"), { className: "item" });
        const key = Object.assign(document.createElement("button"), { type: "button" });
        key.setAttribute("aria-pressed", String(!state.hidden.has(item.name)));
        key.append(swatch(item), item.label);
        key.addEventListener("click", () => {
          state.hidden.has(item.name) ? state.hidden.delete(item.name) : state.hidden.add(item.name);
          const k = v.items.indexOf(item);
          c.draw();
          legend.querySelectorAll("button")[k].focus();
        });
        const out = document.createElement("output");
        outputs.push(out);
        entry.append(key, out);
        legend.append(entry);
      }
      const opts = {
        ...size(), legend: { show: false }, pxAlign: 1,
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
        padding: [22, 12, 0, 0], ...v.opts,
      };
      opts.hooks = { ...opts.hooks, setCursor: [u => say(u.cursor.idx)] };
      c.plot = new uPlot(opts, v.data, place);
      say(null);
    };
    const swatch = item => {
      if (!item.dash) return Object.assign(document.createElement("span"), { className: "swatch " + item.cls });
      const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), line = document.createElementNS(ns, "line");
      svg.setAttribute("class", "swatch");
      svg.setAttribute("viewBox", "0 0 32 12");
      for (const [k, x] of Object.entries({ x1: 0, x2: 32, y1: 6, y2: 6, stroke: color(item.cls), "stroke-width": 4, "stroke-dasharray": item.dash.join(" ") })) line.setAttribute(k, x);
      svg.append(line);
      return svg;
    };
    place.addEventListener("keydown", e => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25, Home: -Infinity, End: Infinity }[e.key];
      if (!step) return;
      e.preventDefault();
      legend.firstChild.setAttribute("aria-live", "polite");
      const [from, to] = c.plot.series[0].idxs, now = c.plot.cursor.idx;
      const i = Math.min(to, Math.max(from, now == null ? (step > 0 ? from : to) : now + step));
      c.plot.setCursor({ left: c.plot.valToPos(c.plot.data[0][i], "x"), top: 1 });
    });
    let width = 0;
    new ResizeObserver(() => {
      if (place.clientWidth === width) return;
      width = place.clientWidth;
      if (c.plot) c.plot.setSize(size());
    }).observe(place);
    c.draw();
    all.push(c);
    return c;
  };

  return { make, color, dashes, axis, bytesAxis, logAxis, logScale, positive, phaseHooks,
    redraw: () => all.forEach(c => c.draw()), all };
})();
