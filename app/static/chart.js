// A line chart on a canvas: lines with bands, hover, zoom by dragging, a click that leads on. No library: what Gradio
// brings takes seconds for ten thousand points, this takes milliseconds for twenty thousand.

import { el, number } from "./core.js";

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

function ticks(low, high, count, least = 0) {
  const raw = Math.max(least, (high - low) / Math.max(1, count));
  const unit = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].find((m) => m * unit >= raw) * unit || 1;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

// lines: [{name, points: [{x, y, low?, high?, step?}], colour?, dashed?, thin?}]
export function chart({ title, lines, format = number, unit = "", height = 210, onpick, log = false, least, most, xname = "step" }) {
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": title });
  const legend = el("div", { class: "legend" });
  const tip = el("div", { class: "tip", hidden: true });
  const box = el("figure", { class: "chart", data: { chart: title } }, el("figcaption", {}, title), el("div", { class: "plot", style: { height: `${height}px` } }, canvas, tip), legend);
  let zoom = null, drag = null, hover = null, now = { lines, log, xname };

  const visibleLines = () => now.lines.filter((line) => line.points.length);
  function ranges() {
    const all = visibleLines().flatMap((line) => line.points);
    let xs = all.map((p) => p.x);
    let [x0, x1] = zoom ?? [Math.min(...xs), Math.max(...xs)];
    if (!(x1 > x0)) { x0 -= 0.5; x1 += 0.5; }
    let y0 = Infinity, y1 = -Infinity;
    for (const p of all) {
      if (p.x < x0 || p.x > x1) continue;
      if (now.log && p.y <= 0) continue;
      y0 = Math.min(y0, p.low ?? p.y); y1 = Math.max(y1, p.high ?? p.y);
    }
    if (least !== undefined && !now.log) y0 = Math.min(y0, least);
    if (most !== undefined && !now.log) y1 = Math.max(y1, most);
    if (!(y1 > y0)) { y0 -= Math.abs(y0) * 0.1 || 0.5; y1 += Math.abs(y1) * 0.1 || 0.5; }
    if (now.log) { y0 = Math.max(y0, y1 * 1e-9); return { x0, x1, y0: Math.log10(y0), y1: Math.log10(y1) }; }
    const room = (y1 - y0) * 0.05;
    return { x0, x1, y0: y0 === least ? y0 : y0 - room, y1: y1 === most ? y1 : y1 + room };
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
    if (!visibleLines().length) { c.fillStyle = ink; c.fillText("nothing yet", PAD.left, height / 2); return; }
    const r = ranges();
    const X = (x) => PAD.left + ((x - r.x0) / (r.x1 - r.x0)) * (width - PAD.left - PAD.right);
    const Y = (y) => height - PAD.bottom - (((now.log ? Math.log10(Math.max(y, 1e-300)) : y) - r.y0) / (r.y1 - r.y0)) * (height - PAD.top - PAD.bottom);
    c.strokeStyle = grid; c.fillStyle = ink; c.lineWidth = 1;
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const t of ticks(r.y0, r.y1, 4)) {
      const y = Math.round(Y(now.log ? 10 ** t : t)) + 0.5;
      c.beginPath(); c.moveTo(PAD.left, y); c.lineTo(width - PAD.right, y); c.stroke();
      c.fillText(format(now.log ? 10 ** t : t), PAD.left - 5, y);
    }
    c.textAlign = "center"; c.textBaseline = "top";
    for (const t of ticks(r.x0, r.x1, Math.min(8, width / 80), now.xname === "step" || now.xname === "k" ? 1 : 0)) c.fillText(number(t), X(t), height - PAD.bottom + 6);
    c.save(); c.beginPath(); c.rect(PAD.left, 0, width - PAD.left - PAD.right, height - PAD.bottom + 1); c.clip();
    now.lines.forEach((line, i) => {
      const colour = style(line.colour ?? COLOURS[i % COLOURS.length]);
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
    box.scale = { X, Y, inverse: (px) => r.x0 + ((px - PAD.left) / (width - PAD.left - PAD.right)) * (r.x1 - r.x0) };
  }

  function drawLegend() {
    legend.replaceChildren(...visibleLines().map((line) => {
      const last = line.points[line.points.length - 1];
      const band = last.low !== undefined ? ` [${format(last.low)}, ${format(last.high)}]` : "";
      const colour = line.colour ?? COLOURS[now.lines.indexOf(line) % COLOURS.length];
      return el("span", { class: "key", data: { line: line.name, x: String(last.x), y: String(last.y) } },
        el("i", { style: { background: `var(${colour})` } }), `${line.name} `, el("b", {}, `${format(last.y)}${unit}`), el("small", {}, band));
    }));
  }

  const nearest = (points, x) => points.reduce((best, p) => (Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best), points[0]);
  function read(x) {
    const all = visibleLines();
    if (!all.length) return null;
    const at = nearest(all.flatMap((line) => line.points), x);
    hover = at.x;
    const rows = all.map((line) => [line, nearest(line.points, at.x)]).filter(([, p]) => p.x === at.x);
    tip.replaceChildren(el("b", {}, `${now.xname} ${number(at.x)}`), ...rows.map(([line, p]) =>
      el("div", {}, `${line.name} ${format(p.y)}${unit}${p.low !== undefined ? ` [${format(p.low)}, ${format(p.high)}]` : ""}`)));
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
  canvas.addEventListener("pointerdown", (event) => { drag = { from: event.offsetX, to: null }; });
  canvas.addEventListener("pointerup", (event) => {
    const was = drag;
    drag = null;
    if (!was || !box.scale) return;
    if (was.to !== null) {
      const ends = [box.scale.inverse(was.from), box.scale.inverse(event.offsetX)].sort((a, b) => a - b);
      zoom = ends;
      box.dataset.zoom = ends.map((end) => end.toFixed(2)).join(" ");
    } else if (onpick) {
      const at = read(box.scale.inverse(event.offsetX));
      if (at) onpick(at);
    }
    draw();
  });
  canvas.addEventListener("dblclick", () => { zoom = null; delete box.dataset.zoom; draw(); });
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
  box.update = (next) => { now = { ...now, ...next }; drawLegend(); draw(); };
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
