// A line chart: lines with bands, hover, zoom by dragging, a click that opens something. No library: the one that Gradio
// brings takes seconds for ten thousand points, this takes milliseconds for twenty thousand.

import { el, number, share } from "./core.js";
import { paint, paintMessage } from "./plot.js";

export const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const WHOLE_AXES = ["step", "k", "tokens"];  // x axes of whole numbers
const DRAG_PIXELS = 6;  // a shorter movement is a click

// The exponential moving average of the points, without a bias towards 0 at the start.
export function smooth(points, weight) {
  if (!weight) return points;
  let sum = 0, norm = 0;
  return points.map((point) => {
    sum = weight * sum + (1 - weight) * point.y;
    norm = weight * norm + (1 - weight);
    return { ...point, y: sum / norm };
  });
}

// The point whose x is nearest.
const nearest = (points, x) => points.reduce((best, point) => (Math.abs(point.x - x) < Math.abs(best.x - x) ? point : best), points[0]);

// The lowest and the highest x of the lines.
function spanOf(lines) {
  let first = Infinity, last = -Infinity;  // a loop: Math.min(...xs) takes no hundred thousand arguments
  for (const { points } of lines) for (const { x } of points) {
    first = Math.min(first, x);
    last = Math.max(last, x);
  }
  return first <= last ? [first, last] : [0, 1];
}

// The ranges of the axes for the lines within [x0, x1]; null if there is nothing to draw. `least`: a y that is always in.
function rangesOf(lines, [x0, x1], { isLog, isShare, least }) {
  const points = lines.flatMap((line) => line.points).filter((point) => !isLog || point.y > 0);
  if (!points.length) return null;
  if (!(x1 > x0)) { x0 -= 0.5; x1 += 0.5; }
  const inside = points.filter((point) => point.x >= x0 && point.x <= x1);
  let y0 = Infinity, y1 = -Infinity;
  for (const point of inside.length ? inside : points) {
    y0 = Math.min(y0, point.low ?? point.y);
    y1 = Math.max(y1, point.high ?? point.y);
  }
  if (isLog) {
    y0 = Math.max(y0, y1 * 1e-9);
    const margin = (Math.log10(y1 / y0) || 1) * 0.05;
    return { x0, x1, y0: Math.log10(y0) - margin, y1: Math.log10(y1) + margin };
  }
  if (least !== undefined) y0 = Math.min(y0, least);
  const margin = y1 > y0 ? (y1 - y0) * 0.05 : Math.abs(y1) * 0.1 || 1;
  return { x0, x1, y0: y0 === least ? y0 : y0 - margin, y1: isShare && y1 <= 1 ? Math.min(1, y1 + margin) : y1 + margin };
}

// The range between two x that the mouse was dragged between, whole on an axis of whole numbers; null for all of it.
function zoomRange(from, to, [first, last], isWhole) {
  let ends = [from, to].sort((a, b) => a - b).map((end) => Math.max(first, Math.min(last, end)));
  if (isWhole) ends = Math.round(ends[0]) < Math.round(ends[1]) ? ends.map(Math.round) : [Math.floor(ends[0]), Math.ceil(ends[1])];
  return ends[1] > ends[0] && (ends[0] > first || ends[1] < last) ? ends : null;
}

// The lines one on top of the other: each point has the band from the sum of the lines before it up to its own.
function stack(lines) {
  const sums = new Map();
  return lines.map((line) => ({
    ...line, isFilled: true,
    points: line.points.map((point) => {
      const low = sums.get(point.x) ?? 0;
      sums.set(point.x, low + point.y);
      return { ...point, y: low + point.y, low, high: low + point.y };
    }),
  }));
}

// A chart as a figure element. Its method update({lines, log, xname}) draws it again.
// lines: [{name, points: [{x, y, low?, high?, step?}], colour?, dashed?, thin?}]. isShare: values are shares, shown in
// percent. isStacked: lines are areas on top of each other. least: a value that the axis always shows. unit: of the values,
// beside the title. onpick: called with a point.
export function chart({ title, lines, isShare = false, isStacked = false, unit = "", height = 210, onpick, log = false, least = isShare ? 0 : undefined, xname = "step" }) {
  const view = new ChartView({ title, unit, height, isShare, isStacked, least, onpick }, { lines, log, xname });
  return view.box;
}

// Let the charts in an element, which have the same axis, show the same range of x.
export function shareZoom(root) {
  root.addEventListener("zoomchange", (event) => {
    for (const figure of root.querySelectorAll("figure.chart")) if (figure !== event.target) figure.zoomTo(event.detail);
  });
}

// One listener for all charts: one of each chart's own would keep every chart that was ever shown.
addEventListener("themechange", () => { for (const figure of document.querySelectorAll("figure.chart")) figure.draw(); });

class ChartView {
  // `options` do not change; `data` are replaced by update().
  constructor(options, data) {
    this.options = options;
    this.data = data;
    this.hiddenNames = new Set();  // of series that the legend has switched off
    this.zoom = this.drag = this.hover = this.scale = null;
    this.format = options.isShare ? share : number;
    this.build();
    this.listen();
    this.box.update = (next) => this.update(next);
    this.box.draw = () => this.draw();
    this.box.zoomTo = (ends) => this.zoomTo(ends, { isShared: false });
    this.drawLegend();
    requestAnimationFrame(() => this.draw());
  }

  // Create the elements.
  build() {
    const { title, unit, height } = this.options;
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": title });
    this.tip = el("div", { class: "tip", hidden: true });
    this.plot = el("div", { class: "plot", style: { height: `${height}px` } }, this.canvas, this.tip);
    this.range = el("span", { data: { range: "" } });
    this.reset = el("button", { class: "reset", hidden: true, onclick: () => this.zoomTo(null) }, "reset zoom");
    this.legend = el("div", { class: "legend", role: "group", "aria-label": `series of ${title}` });
    this.box = el("figure", { class: "chart", data: { chart: title } },
      el("figcaption", {}, title, unit ? el("small", {}, `, ${unit}`) : null),
      this.plot, el("div", { class: "axis" }, this.range, this.reset), this.legend);
  }

  // The lines that have points, and those of them that are not hidden.
  get filledLines() { return this.data.lines.filter((line) => line.points.length); }
  get visibleLines() { return this.filledLines.filter((line) => !this.hiddenNames.has(line.name)); }
  get isWhole() { return WHOLE_AXES.includes(this.data.xname); }

  // The colour of a line: its own, or the next one of the list.
  colourOf(line) { return line.colour ?? COLOURS[this.data.lines.indexOf(line) % COLOURS.length]; }

  // Replace lines, xname or log, and draw again. The zoom is that of an axis, and ends with it.
  update(next) {
    const isSameAxis = (next.xname ?? this.data.xname) === this.data.xname;
    this.data = { ...this.data, ...next };
    if (!isSameAxis) { this.zoom = null; delete this.box.dataset.zoom; }
    this.drawLegend();
    this.draw();
  }

  // Show a range of x, or everything (null). isShared: tell the charts that share the zoom (shareZoom).
  zoomTo(ends, { isShared = true } = {}) {
    this.zoom = ends;
    if (isShared) this.box.dispatchEvent(new CustomEvent("zoomchange", { bubbles: true, detail: ends }));
    if (ends) this.box.dataset.zoom = ends.map((end) => end.toFixed(2)).join(" "); else delete this.box.dataset.zoom;
    this.draw();
  }

  // Draw the canvas and the line of text below it.
  draw() {
    if (!this.box.isConnected) return;
    const { canvas, box, visibleLines } = this, { height, isShare, isStacked, least } = this.options, isLog = this.data.log;
    const size = { width: this.plot.clientWidth, height };
    const shown = isStacked ? stack(visibleLines) : visibleLines;
    const ranges = rangesOf(shown, this.zoom ?? spanOf(visibleLines), { isLog, isShare, least });
    this.drawRange();
    if (!ranges) {
      const message = visibleLines.length ? "no value above 0" : this.filledLines.length ? "every series is hidden" : "no data";
      paintMessage(canvas, { ...size, message });
      this.scale = null;
      Object.assign(box.dataset, { points: "0", xticks: "", yticks: "" });
      return;
    }
    const lines = shown.map((line) => ({ ...line, colour: this.colourOf(this.data.lines.find((one) => one.name === line.name)) }));
    const { xTicks, yTicks, scale } = paint(canvas, { ...size, lines, ranges, isLog, isShare, isWhole: this.isWhole, hover: this.hover, drag: this.drag });
    this.scale = scale;
    box.dataset.points = String(visibleLines.reduce((sum, line) => sum + line.points.length, 0));
    box.dataset.xticks = xTicks.map((tick) => tick.text).join("|");
    box.dataset.yticks = yTicks.map((tick) => tick.text).join("|");
  }

  // Say which range of x is shown, and of which.
  drawRange() {
    const words = (ends) => (ends[0] === ends[1] ? number(ends[0]) : `${number(ends[0])} to ${number(ends[1])}`);
    const { xname } = this.data, lines = this.visibleLines, all = words(spanOf(lines));
    this.range.textContent = !lines.length ? xname : this.zoom ? `${xname} ${words(this.zoom)} of ${all}` : `${xname} ${all}`;
    this.reset.hidden = !this.zoom;
  }

  // Draw a button for each series, with its last value; it hides and shows the series.
  drawLegend() {
    const focusName = this.legend.contains(document.activeElement) ? document.activeElement.dataset.line : null;
    this.legend.replaceChildren(...this.filledLines.map((line) => this.legendKey(line)));
    if (focusName !== null) [...this.legend.children].find((key) => key.dataset.line === focusName)?.focus();
  }

  // The interval of a point, if it has one.
  band({ low, high }) { return low === undefined ? "" : ` [${this.format(low)}, ${this.format(high)}]`; }

  legendKey(line) {
    const last = line.points[line.points.length - 1];
    const isVisible = () => String(!this.hiddenNames.has(line.name));
    const key = el("button", {
      class: "key", title: "hide or show", "aria-pressed": isVisible(), data: { line: line.name, x: String(last.x), y: String(last.y) },
      onclick: () => {
        this.hiddenNames[this.hiddenNames.has(line.name) ? "delete" : "add"](line.name);
        key.setAttribute("aria-pressed", isVisible());
        this.leave();
      },
    }, el("i", { style: { background: `var(${this.colourOf(line)})` } }), `${line.name} `, el("b", {}, this.format(last.y)), el("small", {}, this.band(last)));
    return key;
  }

  // Show the values at the x nearest to this one; returns a point there.
  hoverAt(x) {
    const lines = this.visibleLines;
    if (!lines.length) return null;
    const point = nearest(lines.flatMap((line) => line.points), x);
    this.hover = point.x;
    const rows = lines.map((line) => [line, nearest(line.points, point.x)]).filter(([, own]) => own.x === point.x);
    this.tip.replaceChildren(el("b", {}, `${this.data.xname} ${number(point.x)}`),
      ...rows.map(([line, own]) => el("div", {}, `${line.name} ${this.format(own.y)}${this.band(own)}`)));
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(0, Math.min(this.scale.X(point.x) + 10, this.canvas.clientWidth - this.tip.offsetWidth - 4))}px`;
    return point;
  }

  // End hovering and dragging.
  leave() {
    this.hover = this.drag = null;
    this.tip.hidden = true;
    this.draw();
  }

  // Connect mouse, keyboard and size.
  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("pointercancel", () => this.leave());
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = { from: event.offsetX, to: null };
      canvas.setPointerCapture(event.pointerId);  // a drag may end outside
    });
    canvas.addEventListener("pointerup", (event) => this.onRelease(event));
    canvas.addEventListener("dblclick", () => this.zoomTo(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  onMove(event) {
    if (!this.scale) return;
    if (this.drag && Math.abs(event.offsetX - this.drag.from) > DRAG_PIXELS) this.drag.to = event.offsetX;
    this.hoverAt(this.scale.inverse(event.offsetX));
    this.draw();
  }

  // Zoom at the end of a drag; open the point at the end of a click.
  onRelease(event) {
    const { drag, scale } = this;
    this.drag = null;
    if (!drag || !scale) return;
    const x = scale.inverse(event.offsetX);
    if (drag.to !== null) return this.zoomTo(zoomRange(scale.inverse(drag.from), x, spanOf(this.visibleLines), this.isWhole));
    const point = this.options.onpick && this.hoverAt(x);
    if (point) this.options.onpick(point);
    this.draw();
  }

  // The arrow keys move along the chart, Enter does what a click does.
  onKey(event) {
    const xs = [...new Set(this.visibleLines.flatMap((line) => line.points.map((point) => point.x)))].sort((a, b) => a - b);
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      const i = this.hover === null ? -1 : xs.indexOf(this.hover);
      this.hoverAt(xs[Math.max(0, Math.min(xs.length - 1, i + (event.key === "ArrowRight" ? 1 : -1)))]);
      this.draw();
    } else if (event.key === "Enter" && this.hover !== null && this.options.onpick) this.options.onpick(this.hoverAt(this.hover));
  }
}

// Horizontal bars: [{name, value, class?, title?}]. The longest bar is `most`, by default the largest value.
export function bars(items, most = Math.max(...items.map((item) => item.value), 1e-12)) {
  return el("div", { class: "bars" }, items.map((item) =>
    el("div", { class: "bar", title: item.title ?? "", data: { bar: item.name } },
      el("span", { class: "name" }, item.name),
      el("span", { class: "track" }, el("i", { class: item.class ?? "", style: { width: `${(100 * item.value) / most}%` } })),
      el("b", {}, number(item.value)))));
}
