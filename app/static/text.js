// What a model wrote: as tokens with a colour, as text with its second thoughts marked, with formulas set, as a difference.

import { el, number } from "./core.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set("math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mtable mtr mtd".split(" "));
const ATTRIBUTES = new Set("display mathvariant stretchy fence separator accent linethickness notation columnalign".split(" "));

function formula([tag, attributes, ...children]) {
  if (!ELEMENTS.has(tag)) return document.createTextNode("");
  const made = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  made.append(...children.map((child) => (Array.isArray(child) ? formula(child) : child)));
  return made;
}

// `hits`: [start, end] in the text that the segments are of.
export function rendered(segments, hits = []) {
  const text = segments.map((piece) => piece.source ?? piece).join("");
  let at = 0;
  return segments.map((piece) => {
    const from = at;
    at += (piece.source ?? piece).length;
    if (typeof piece === "string") return spotted(text, hits, from, at);
    const hit = hitClass(hits, from, at);
    if (!piece.tree) return el("code", { class: hit, title: "a formula that cannot be set" }, piece.source);
    return el("span", { class: `formula${piece.block ? " block" : ""}${hit}`, title: piece.source }, formula(piece.tree));
  });
}

// ------------------------------------------------------------------------------------------------ places

// The server counts characters; a string of this language counts an emoji as two. From the one to the other.
export function unitsOf(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (place) => place;
  const units = [0];
  for (const character of text) units.push(units[units.length - 1] + character.length);
  return (place) => units[place];
}

// The number of the first hit that ends after this place; hits are in order and do not overlap.
function firstHit(hits, place) {
  let low = 0, high = hits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (hits[middle][1] > place) high = middle; else low = middle + 1;
  }
  return low;
}

// The class of what stands in [from, to): " hit" where a hit begins, " hit rest" where one goes on.
function hitClass(hits, from, to) {
  const hit = hits[firstHit(hits, from)];
  return !hit || hit[0] >= to ? "" : hit[0] < from ? " hit rest" : " hit";
}

// text[from:to] as text nodes, with the hits of a search in marks.
export function spotted(text, hits, from = 0, to = text.length) {
  const box = document.createDocumentFragment();
  let at = from;
  for (let i = firstHit(hits, from); i < hits.length && hits[i][0] < to; i += 1) {
    const start = Math.max(from, hits[i][0]), end = Math.min(to, hits[i][1]);
    box.append(text.slice(at, start), el("mark", { class: hits[i][0] < from ? "hit rest" : "hit" }, text.slice(start, end)));
    at = end;
  }
  box.append(text.slice(at, to));
  return box;
}

// ------------------------------------------------------------------------------------------------ tokens

export const COLOURINGS = {
  none: "no colour", logprobs: "log-probability", entropy: "entropy", kl: "KL to the reference", advantage: "advantage", loss: "share in the loss",
};

const mix = (name, share) => `color-mix(in srgb, var(${name}) ${Math.round(100 * Math.max(0, Math.min(1, share)))}%, transparent)`;

// The background of a token for a figure, of all the figures of its rollout.
function paint(how, value, scale) {
  if (value === null || value === undefined) return "";
  if (how === "logprobs") return mix("--bad", 0.75 * (1 - Math.exp(value)));
  if (how === "entropy" || how === "kl") return mix("--c4", scale ? (0.8 * Math.max(0, value)) / scale : 0);
  return mix(value > 0 === (how === "advantage") ? "--good" : "--bad", scale ? (0.6 * Math.abs(value)) / scale : 0);
}

export function legend(how, rollout) {
  const meaning = {
    none: "", logprobs: "red: the policy gave this token little probability as it drew it",
    entropy: "violet: the policy was undecided here", kl: "violet: the policy has moved away from the reference here",
    advantage: rollout.tokens?.advantages ? "green is made likelier, red less likely: every token has its own advantage" : `every token of the completion shares its advantage, ${number(rollout.advantage)}: green is made likelier, red less likely`,
    loss: "green: the update raises this token's probability; red: lowers it; strength: its share in the step's loss (weight × (−advantage + KL term))",
  }[how];
  return el("p", { class: "muted", data: { legend: how } }, meaning);
}

// Tokens of a rollout; figures on hover. `marks`: [start, end, class], `hits`: [start, end], both in the completion.
export function tokens(rollout, how, marks = [], hits = []) {
  const view = rollout.tokens;
  if (!view) return marked(rollout.completion, marks, hits);
  const figures = (i) => ["logprobs", "entropy", "kl", "loss"].filter((name) => view[name]).map((name) => [name, view[name][i]]);
  const column = how === "advantage" ? view.advantages : view[how];
  const scale = how === "advantage" && !column ? Math.max(1, Math.abs(rollout.advantage)) : column ? Math.max(...column.map((v) => Math.abs(v ?? 0)), 1e-12) : 0;
  const box = document.createDocumentFragment();
  let at = view.prefill.length;
  if (view.prefill) box.append(el("span", { class: "prefill", title: "given, not sampled" }, spotted(view.prefill, hits)));
  view.pieces.forEach((piece, i) => {
    const value = column ? column[i] : how === "advantage" ? rollout.advantage : undefined;
    const mark = marks.find(([start, end]) => at < end && at + piece.length > start && piece.length);
    const span = el("span", { class: `t${mark ? ` ${mark[2]}` : ""}${hitClass(hits, at, at + piece.length)}`, data: { i: String(i) } }, piece);
    if (how !== "none") span.style.background = paint(how, value, scale);
    span.figures = () => `token ${i + 1}: ${JSON.stringify(piece)}\n${figures(i).map(([name, v]) => `${COLOURINGS[name]} ${number(v, 4)}${name === "logprobs" ? ` (p ${(100 * Math.exp(v)).toFixed(1)} %)` : ""}`).join("\n")}\nadvantage ${number(view.advantages?.[i] ?? rollout.advantage)}`;
    box.append(span);
    at += piece.length;
  });
  const holder = el("div", { class: "text tokens", dir: "ltr" }, box);
  holder.addEventListener("pointerover", (event) => {
    const token = event.target.closest?.(".t");
    if (token?.figures && !token.title) token.title = token.figures();
  });
  return holder;
}

// text[from:to] as it is written, with the marks that lie in it, and the hits of a search.
export function marked(text, marks = [], hits = [], from = 0, to = text.length) {
  const box = el("div", { class: "text", dir: "ltr" });
  let at = from;
  for (const [start, end, name, title] of [...marks].sort((a, b) => a[0] - b[0])) {
    if (start < at || end > to) continue;
    box.append(spotted(text, hits, at, start), el("mark", { class: name, title: title ?? "" }, spotted(text, hits, start, end)));
    at = end;
  }
  box.append(spotted(text, hits, at, to));
  return box;
}

export function marksOf(text, spans) {
  const unit = unitsOf(text);
  return spans.map((span) => [unit(span.start), unit(span.end), `cue ${span.label}`, about(span)]);
}

export function about(span) {
  const change = span.before || span.after ? `: ${span.before || "?"} → ${span.after || "?"}` : "";
  return `${span.label} (${span.kind}), ${span.outcome}${change}`;
}

export function difference(pieces, side) {
  return el("div", { class: "text diff", dir: "ltr", data: { side } }, pieces.filter(([kind]) => kind === "same" || kind === side)
    .map(([kind, text]) => (kind === "same" ? text : el(kind === "a" ? "del" : "ins", {}, text))));
}
