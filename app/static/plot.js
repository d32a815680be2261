// The picture of a line chart: axes, bands and lines on a canvas.

import { ticksOf } from "./axis.js";

const PADDING = { left: 46, right: 10, top: 8, bottom: 22 };

// A colour of the theme by the name of its CSS variable.
export const themeColour = (name) => getComputedStyle(document.getElementById("reasoner")).getPropertyValue(name).trim();

// Size the canvas for a width in CSS pixels; returns its context.
function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "11px ui-sans-serif, system-ui, sans-serif";
  return context;
}

// Write a message in place of a chart that has nothing to show.
export function paintMessage(canvas, { width, height, message }) {
  const context = prepare(canvas, width, height);
  context.fillStyle = themeColour("--muted");
  context.fillText(message, PADDING.left, height / 2);
}

// Paint lines within ranges; returns the ticks and the scale {X, inverse}. `lines`: with `colour`. `ranges`: {x0, x1, y0,
// y1}, logarithms of y if isLog. `hover`: x of the vertical line, or null. `drag`: {from, to} in pixels, or null.
export function paint(canvas, { width, height, lines, ranges, isLog, isShare, isWhole, hover, drag }) {
  const context = prepare(canvas, width, height);
  const { x0, x1, y0, y1 } = ranges;
  const yTicks = ticksOf(...(isLog ? [10 ** y0, 10 ** y1] : [y0, y1]), height < 150 ? 2 : 4, { isShare, isLog });
  const xTicks = ticksOf(x0, x1, Math.min(8, width / 80), { isWhole });
  const labelWidth = Math.max(0, ...yTicks.map((tick) => context.measureText(tick.text).width));
  const left = Math.max(PADDING.left, 10 + labelWidth), right = width - PADDING.right, bottom = height - PADDING.bottom;
  const X = (x) => left + ((x - x0) / (x1 - x0)) * (right - left);
  const inverse = (pixel) => x0 + ((pixel - left) / (right - left)) * (x1 - x0);
  const Y = (y) => bottom - (((isLog ? Math.log10(Math.max(y, 1e-300)) : y) - y0) / (y1 - y0)) * (bottom - PADDING.top);
  paintAxes(context, { xTicks, yTicks, X, Y, left, right, bottom });
  context.save();
  context.beginPath(); context.rect(left - 3, 0, right - left + 6, bottom + 4); context.clip();  // a point at the edge is whole
  for (const line of lines) {
    const points = line.points.filter((point) => !isLog || point.y > 0);
    paintBand(context, line, points, X, Y);
    paintLine(context, line, points, X, Y, width);
  }
  if (hover !== null) {
    context.strokeStyle = themeColour("--muted");
    context.beginPath(); context.moveTo(X(hover), PADDING.top); context.lineTo(X(hover), bottom); context.stroke();
  }
  if (drag && drag.to !== null) {
    context.fillStyle = themeColour("--accent"); context.globalAlpha = 0.15;
    context.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height);
  }
  context.restore();
  return { xTicks, yTicks, scale: { X, inverse } };
}

// Paint the grid and the labels of both axes.
function paintAxes(context, { xTicks, yTicks, X, Y, left, right, bottom }) {
  context.strokeStyle = themeColour("--line"); context.fillStyle = themeColour("--muted"); context.lineWidth = 1;
  context.textAlign = "right"; context.textBaseline = "middle";
  for (const tick of yTicks) {
    const y = Math.round(Y(tick.at)) + 0.5;
    context.beginPath(); context.moveTo(left, y); context.lineTo(right, y); context.stroke();
    context.fillText(tick.text, left - 5, y);
  }
  context.textAlign = "center"; context.textBaseline = "top";
  for (const tick of xTicks) context.fillText(tick.text, X(tick.at), bottom + 6);
}

// Paint the intervals of a line as a band.
function paintBand(context, line, points, X, Y) {
  if (!points.some((point) => point.low !== undefined)) return;
  context.fillStyle = themeColour(line.colour); context.globalAlpha = line.isFilled ? 0.5 : 0.14;
  context.beginPath();
  points.forEach((point, i) => context[i ? "lineTo" : "moveTo"](X(point.x), Y(point.high ?? point.y)));
  [...points].reverse().forEach((point) => context.lineTo(X(point.x), Y(point.low ?? point.y)));
  context.fill();
  context.globalAlpha = 1;
}

// Paint a line, and its points if they are few.
function paintLine(context, line, points, X, Y, width) {
  context.strokeStyle = context.fillStyle = themeColour(line.colour);
  context.lineWidth = line.thin ? 1 : 2; context.globalAlpha = line.thin ? 0.6 : 1;
  context.setLineDash(line.dashed ? [5, 4] : []);
  context.beginPath();
  decimate(points, width).forEach((point, i) => context[i ? "lineTo" : "moveTo"](X(point.x), Y(point.y)));
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 1;
  if (points.length > 40 || line.dashed) return;
  for (const point of points) {
    context.beginPath(); context.arc(X(point.x), Y(point.y), line.thin ? 1.5 : 2.5, 0, 7); context.fill();
  }
}

// Of many points in a pixel only the first, lowest, highest and last.
function decimate(points, width) {
  if (points.length < 3 * width) return points;
  const size = Math.ceil(points.length / width), result = [];
  for (let i = 0; i < points.length; i += size) {
    const part = points.slice(i, i + size);
    const low = part.reduce((a, b) => (b.y < a.y ? b : a)), high = part.reduce((a, b) => (b.y > a.y ? b : a));
    result.push(...[...new Set([part[0], low, high, part[part.length - 1]])].sort((a, b) => a.x - b.x));
  }
  return result;
}
