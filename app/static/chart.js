// A line chart on a canvas: lines with bands, hover, zoom by dragging, a click that leads on. No library: what Gradio
// brings takes seconds for ten thousand points, this takes milliseconds for twenty thousand.

import { ticksOf } from "./axis.js";
import { el, number, share } from "./core.js";

const PAD = { left: 46, right: 10, top: 8, bottom: 22 };
export const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const style = (name) => getComputedStyle(document.getElementById("reasoner")).getPropertyValue(name).trim();

export function smoothed(points, weight) {
  if (!weight) return points;
  let sum = 0, norm = 0;
  return points.map((point) => {
    sum = weight * sum + (1 - weight) * point.y;
    norm = weight * norm + (1 - weight);
    return { ...point, y: sum / norm };
  });
}

const WHOLE = ["step", "k", "tokens"];  // axes of whole numbers

// lines: [{name, points: [{x, y, low?, high?, step?}], colour?, dashed?, thin?}]. isShare: values are shares, shown in
// percent. least: a value that the axis always shows. unit: of the values, beside the title.
export function chart({ title, lines, isShare = false, unit = "", height = 210, onpick, log = false, least = isShare ? 0 : undefined, xname = "step" }) {
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": title });
  const legend = el("div", { class: "legend", role: "group", "aria-label": `series of ${title}` });
  const tip = el("div", { class: "tip", hidden: true });
  const range = el("span", { data: { range: "" } }), reset = el("button", { class: "reset", hidden: true, onclick: () => zoomTo(null) }, "reset zoom");
  const box = el("figure", { class: "chart", data: { chart: title } },
    el("figcaption", {}, title, unit ? el("small", {}, `, ${unit}`) : null),
    el("div", { class: "plot", style: { height: `${height}px` } }, canvas, tip), el("div", { class: "axis" }, range, reset), legend);
  const format = isShare ? share : number;
  const hidden = new Set();  // names of series that the legend has switched off
  let zoom = null, drag = null, hover = null, now = { lines, log, xname };

  const filledLines = () => now.lines.filter((line) => line.points.length);
  const visibleLines = () => filledLines().filter((line) => !hidden.has(line.name));
  const colourOf = (line) => line.colour ?? COLOURS[now.lines.indexOf(line) % COLOURS.length];
  const isWhole = () => WHOLE.includes(now.xname);
  function span() {
    const xs = visibleLines().flatMap((line) => line.points.map((p) => p.x));
    return xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
  }
  // What the axes show, of what can be seen alone; null where nothing can be drawn.
  function ranges() {
    const points = visibleLines().flatMap((line) => line.points).filter((p) => !now.log || p.y > 0);
    if (!points.length) return null;
    let [x0, x1] = zoom ?? span();
    if (!(x1 > x0)) { x0 -= 0.5; x1 += 0.5; }
    const inside = points.filter((p) => p.x >= x0 && p.x <= x1), seen = inside.length ? inside : points;
    let y0 = Infinity, y1 = -Infinity;
    for (const p of seen) { y0 = Math.min(y0, p.low ?? p.y); y1 = Math.max(y1, p.high ?? p.y); }
    if (now.log) {
      y0 = Math.max(y0, y1 * 1e-9);
      const room = (Math.log10(y1 / y0) || 1) * 0.05;
      return { x0, x1, y0: Math.log10(y0) - room, y1: Math.log10(y1) + room };
    }
    if (least !== undefined) y0 = Math.min(y0, least);
    const isShareOfAll = isShare && y1 <= 1, flat = y1 > y0 ? 0 : Math.abs(y1) * 0.1 || 1;
    const room = flat || (y1 - y0) * 0.05;
    return { x0, x1, y0: y0 === least ? y0 : y0 - room, y1: isShareOfAll ? Math.min(1, y1 + room) : y1 + room };
  }
  function zoomTo(ends) {
    zoom = ends;
    if (ends) box.dataset.zoom = ends.map((end) => end.toFixed(2)).join(" "); else delete box.dataset.zoom;
    draw();
  }
  // Of two places that the mouse was dragged between; on an axis of whole numbers whole ones.
  function dragged(from, to) {
    const [first, last] = span();
    let ends = [from, to].sort((a, b) => a - b).map((end) => Math.max(first, Math.min(last, end)));
    if (isWhole()) ends = Math.round(ends[0]) < Math.round(ends[1]) ? ends.map(Math.round) : [Math.floor(ends[0]), Math.ceil(ends[1])];
    return ends[1] > ends[0] && (ends[0] > first || ends[1] < last) ? ends : null;
  }
  function drawRange() {
    const said = (ends) => (ends[0] === ends[1] ? number(ends[0]) : `${number(ends[0])} to ${number(ends[1])}`);
    range.textContent = !visibleLines().length ? now.xname : zoom ? `${now.xname} ${said(zoom)} of ${said(span())}` : `${now.xname} ${said(span())}`;
    reset.hidden = !zoom;
  }

  function draw() {
    if (!box.isConnected) return;
    const width = box.querySelector(".plot").clientWidth, ratio = devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.font = "11px ui-sans-serif, system-ui, sans-serif";
    const ink = style("--muted"), grid = style("--line");
    const r = ranges();
    drawRange();
    if (!r) {
      c.fillStyle = ink; c.fillText(visibleLines().length ? "nothing above 0" : filledLines().length ? "every series is hidden" : "nothing yet", PAD.left, height / 2);
      box.dataset.drawn = "0"; box.scale = null; box.dataset.xticks = box.dataset.yticks = "";
      return;
    }
    const yticks = ticksOf(...(now.log ? [10 ** r.y0, 10 ** r.y1] : [r.y0, r.y1]), 4, { isShare, isLog: now.log });
    const xticks = ticksOf(r.x0, r.x1, Math.min(8, width / 80), { isWhole: isWhole() });
    const left = Math.max(PAD.left, 10 + Math.max(0, ...yticks.map((tick) => c.measureText(tick.text).width)));
    const X = (x) => left + ((x - r.x0) / (r.x1 - r.x0)) * (width - left - PAD.right);
    const Y = (y) => height - PAD.bottom - (((now.log ? Math.log10(Math.max(y, 1e-300)) : y) - r.y0) / (r.y1 - r.y0)) * (height - PAD.top - PAD.bottom);
    c.strokeStyle = grid; c.fillStyle = ink; c.lineWidth = 1;
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const tick of yticks) {
      const y = Math.round(Y(tick.at)) + 0.5;
      c.beginPath(); c.moveTo(left, y); c.lineTo(width - PAD.right, y); c.stroke();
      c.fillText(tick.text, left - 5, y);
    }
    c.textAlign = "center"; c.textBaseline = "top";
    for (const tick of xticks) c.fillText(tick.text, X(tick.at), height - PAD.bottom + 6);
    c.save(); c.beginPath(); c.rect(left, 0, width - left - PAD.right, height - PAD.bottom + 1); c.clip();
    visibleLines().forEach((line) => {
      const colour = style(colourOf(line));
      const points = line.points.filter((p) => !now.log || p.y > 0);
      if (points.some((p) => p.low !== undefined)) {
        c.fillStyle = colour; c.globalAlpha = 0.14; c.beginPath();
        points.forEach((p, n) => c[n ? "lineTo" : "moveTo"](X(p.x), Y(p.high ?? p.y)));
        [...points].reverse().forEach((p) => c.lineTo(X(p.x), Y(p.low ?? p.y)));
        c.fill(); c.globalAlpha = 1;
      }
      c.strokeStyle = colour; c.lineWidth = line.thin ? 1 : 2; c.setLineDash(line.dashed ? [5, 4] : []);
      c.globalAlpha = line.thin ? 0.6 : 1;
      c.beginPath();
      for (const p of decimated(points, width)) (p.start ? c.moveTo : c.lineTo).call(c, X(p.x), Y(p.y));
      c.stroke(); c.setLineDash([]); c.globalAlpha = 1;
      if (points.length <= 40 && !line.dashed) { c.fillStyle = colour; for (const p of points) { c.beginPath(); c.arc(X(p.x), Y(p.y), line.thin ? 1.5 : 2.5, 0, 7); c.fill(); } }
    });
    if (hover !== null) {
      c.strokeStyle = ink; c.beginPath(); c.moveTo(X(hover), PAD.top); c.lineTo(X(hover), height - PAD.bottom); c.stroke();
    }
    if (drag && drag.to !== null) { c.fillStyle = style("--accent"); c.globalAlpha = 0.15; c.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height); }
    c.restore();
    box.dataset.drawn = String(visibleLines().reduce((n, line) => n + line.points.length, 0));
    box.dataset.xticks = xticks.map((tick) => tick.text).join("|"); box.dataset.yticks = yticks.map((tick) => tick.text).join("|");
    box.scale = { X, inverse: (px) => r.x0 + ((px - left) / (width - left - PAD.right)) * (r.x1 - r.x0) };
  }

  function drawLegend() {
    const focused = legend.contains(document.activeElement) ? document.activeElement.dataset.line : null;
    legend.replaceChildren(...filledLines().map((line) => {
      const last = line.points[line.points.length - 1];
      const band = last.low !== undefined ? ` [${format(last.low)}, ${format(last.high)}]` : "";
      const key = el("button", { class: "key", title: "hide or show", "aria-pressed": String(!hidden.has(line.name)), data: { line: line.name, x: String(last.x), y: String(last.y) }, onclick: () => {
        hidden[hidden.has(line.name) ? "delete" : "add"](line.name);
        key.setAttribute("aria-pressed", String(!hidden.has(line.name)));
        hover = null; tip.hidden = true;
        draw();
      } }, el("i", { style: { background: `var(${colourOf(line)})` } }), `${line.name} `, el("b", {}, format(last.y)), el("small", {}, band));
      return key;
    }));
    if (focused !== null) [...legend.children].find((key) => key.dataset.line === focused)?.focus();
  }

  const nearest = (points, x) => points.reduce((best, p) => (Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best), points[0]);
  function read(x) {
    const all = visibleLines();
    if (!all.length) return null;
    const at = nearest(all.flatMap((line) => line.points), x);
    hover = at.x;
    const rows = all.map((line) => [line, nearest(line.points, at.x)]).filter(([, p]) => p.x === at.x);
    tip.replaceChildren(el("b", {}, `${now.xname} ${number(at.x)}`), ...rows.map(([line, p]) =>
      el("div", {}, `${line.name} ${format(p.y)}${p.low !== undefined ? ` [${format(p.low)}, ${format(p.high)}]` : ""}`)));
    tip.hidden = false;
    const px = box.scale.X(at.x);
    tip.style.left = `${Math.min(px + 10, canvas.clientWidth - tip.offsetWidth - 4)}px`;
    return at;
  }
  canvas.addEventListener("pointermove", (event) => {
    if (!box.scale) return;
    const px = event.offsetX;
    if (drag) drag.to = Math.abs(px - drag.from) > 6 ? px : drag.to;
    read(box.scale.inverse(px));
    draw();
  });
  canvas.addEventListener("pointerleave", () => { hover = null; tip.hidden = true; drag = null; draw(); });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { from: event.offsetX, to: null };
    canvas.setPointerCapture(event.pointerId);  // a drag may end outside
  });
  canvas.addEventListener("pointercancel", () => { drag = null; draw(); });
  canvas.addEventListener("pointerup", (event) => {
    const was = drag;
    drag = null;
    if (!was || !box.scale) return;
    if (was.to !== null) return zoomTo(dragged(box.scale.inverse(was.from), box.scale.inverse(event.offsetX)));
    const at = onpick && read(box.scale.inverse(event.offsetX));
    if (at) onpick(at);
    draw();
  });
  canvas.addEventListener("dblclick", () => zoomTo(null));
  canvas.addEventListener("keydown", (event) => {
    const xs = [...new Set(visibleLines().flatMap((line) => line.points.map((p) => p.x)))].sort((a, b) => a - b);
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      const i = hover === null ? -1 : xs.indexOf(hover);
      read(xs[Math.max(0, Math.min(xs.length - 1, i + (event.key === "ArrowRight" ? 1 : -1)))]);
      draw();
    } else if (event.key === "Enter" && hover !== null && onpick) onpick(read(hover));
  });
  const watcher = new ResizeObserver(draw);
  watcher.observe(box);
  addEventListener("themechange", draw);
  box.update = (next) => {
    if ((next.xname ?? now.xname) !== now.xname) { zoom = null; delete box.dataset.zoom; }  // it was of another axis
    now = { ...now, ...next };
    drawLegend(); draw();
  };
  drawLegend();
  requestAnimationFrame(draw);
  return box;
}

// Of many points in a pixel the first, lowest, highest and last are enough; a gap is not bridged.
function decimated(points, width) {
  if (points.length < 3 * width) return points.map((p, i) => ({ ...p, start: i === 0 }));
  const found = [];
  const size = Math.ceil(points.length / width);
  for (let i = 0; i < points.length; i += size) {
    const part = points.slice(i, i + size);
    const low = part.reduce((a, b) => (b.y < a.y ? b : a)), high = part.reduce((a, b) => (b.y > a.y ? b : a));
    found.push(...[...new Set([part[0], low, high, part[part.length - 1]])].sort((a, b) => a.x - b.x));
  }
  return found.map((p, i) => ({ ...p, start: i === 0 }));
}

// Bars beside each other: [{name, value, colour?, title?}], values are shares of the largest.
export function bars(items, format = number) {
  const most = Math.max(...items.map((item) => item.value), 1e-12);
  return el("div", { class: "bars" }, items.map((item) => el("div", { class: "bar", title: item.title ?? "", data: { bar: item.name } },
    el("span", { class: "name" }, item.name),
    el("span", { class: "track" }, el("i", { class: item.class ?? "", style: { width: `${(100 * item.value) / most}%` } })),
    el("b", {}, format(item.value)))));
}
