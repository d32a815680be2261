// Text that a model wrote: coloured tokens, marks of reflection and of search hits, formulas, differences.

import { el, firstIndex, number } from "./core.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(("math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup " +
  "msubsup munder mover munderover mmultiscripts mtable mtr mtd").split(" "));
const ATTRIBUTES = new Set("display mathvariant stretchy fence separator accent linethickness notation columnalign".split(" "));

// A tree of MathML as an element; elements and attributes that are not in the lists are left out.
function formula([tag, attributes, ...children]) {
  if (!ELEMENTS.has(tag)) return document.createTextNode("");
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes)) if (ATTRIBUTES.has(name)) element.setAttribute(name, value);
  element.append(...children.map((child) => (Array.isArray(child) ? formula(child) : child)));
  return element;
}

// Text with its formulas. `hits`: [start, end] in the text that the segments are of.
export function renderFormulas(segments, hits = []) {
  const text = segments.map((piece) => piece.source ?? piece).join("");
  let end = 0;
  return segments.map((piece) => {
    const start = end;
    end += (piece.source ?? piece).length;
    if (typeof piece === "string") return markHits(text, hits, start, end);
    const hit = hitClass(hits, start, end);
    if (!piece.tree) return el("code", { class: hit, title: "a formula that cannot be rendered" }, piece.source);
    return el("span", { class: `formula${piece.block ? " block" : ""}${hit}`, title: piece.source }, formula(piece.tree));
  });
}

// ------------------------------------------------------------------------------------------------ search hits

// The server counts characters; a string of JavaScript counts an emoji as two. Converts one position to the other.
export function unitsOf(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (position) => position;
  const units = [0];
  for (const character of text) units.push(units[units.length - 1] + character.length);
  return (position) => units[position];
}

// The index of the first hit that ends after a position; hits are in order and do not overlap.
const firstHit = (hits, position) => firstIndex(hits.length, (i) => hits[i][1] > position);

// The class of the text in [start, end): " hit" where a hit begins, " hit rest" where one goes on.
function hitClass(hits, start, end) {
  const hit = hits[firstHit(hits, start)];
  return !hit || hit[0] >= end ? "" : hit[0] < start ? " hit rest" : " hit";
}

// text[start:end] as text nodes, with the hits of a search in marks.
export function markHits(text, hits, start = 0, end = text.length) {
  const fragment = document.createDocumentFragment();
  let position = start;
  for (let i = firstHit(hits, start); i < hits.length && hits[i][0] < end; i += 1) {
    const hitStart = Math.max(start, hits[i][0]), hitEnd = Math.min(end, hits[i][1]);
    const mark = el("mark", { class: hits[i][0] < start ? "hit rest" : "hit" }, text.slice(hitStart, hitEnd));
    fragment.append(text.slice(position, hitStart), mark);
    position = hitEnd;
  }
  fragment.append(text.slice(position, end));
  return fragment;
}

// ------------------------------------------------------------------------------------------------ tokens

// The statistics that tokens can be coloured by, with their titles.
export const COLOURINGS = {
  none: "no colour", logprobs: "log-probability", entropy: "entropy", kl: "KL to the reference", advantage: "advantage",
  loss: "share in the loss",
};

// A colour of the theme with an opacity.
const mix = (name, opacity) =>
  `color-mix(in srgb, var(${name}) ${Math.round(100 * Math.max(0, Math.min(1, opacity)))}%, transparent)`;

// The background of a token by its statistic. `scale`: the largest absolute value in the rollout.
function tokenColour(statistic, value, scale) {
  if (value === null || value === undefined) return "";
  if (statistic === "logprobs") return mix("--bad", 0.75 * (1 - Math.exp(value)));
  if (statistic === "entropy" || statistic === "kl") return mix("--c4", scale ? (0.8 * Math.max(0, value)) / scale : 0);
  const isGreen = value > 0 === (statistic !== "loss");
  return mix(isGreen ? "--good" : "--bad", scale ? (0.6 * Math.abs(value)) / scale : 0);
}

// The values of a statistic by token; null where the rollout has none.
function columnOf(rollout, statistic) {
  const view = rollout.tokens;
  return statistic === "advantage" ? view.advantages ?? view.pieces.map(() => rollout.advantage) : view[statistic] ?? null;
}

// The largest absolute value of a column, which has the strongest colour.
function scaleOf(rollout, statistic) {
  const least = statistic === "advantage" && !rollout.tokens.advantages ? 1 : 1e-12;
  const sizes = (columnOf(rollout, statistic) ?? []).map((value) => Math.abs(value ?? 0)).filter(Number.isFinite);
  return sizes.reduce((largest, size) => Math.max(largest, size), least);
}

// The colours of a statistic from its lowest to its highest value.
function scaleBar(statistic, rollout) {
  const scale = scaleOf(rollout, statistic), isProbability = statistic === "logprobs";
  const low = isProbability ? 1 : ["entropy", "kl"].includes(statistic) ? 0 : -scale, high = isProbability ? 0 : scale;
  const cells = Array.from({ length: 21 }, (_, i) => low + ((high - low) * i) / 20);
  const valueOf = isProbability ? Math.log : (value) => value;
  const text = (value) => (isProbability ? `p ${100 * value} %` : number(valueOf(value)));
  const ends = isProbability ? [low, high] : [low, high].map(valueOf);
  return el("span", { class: "scale", data: { low: String(ends[0]), high: String(ends[1]) } }, text(low),
    cells.map((value) => el("i", { style: { background: tokenColour(statistic, valueOf(value), scale) } })), text(high));
}

// What the colours of a statistic mean.
export function legend(statistic, rollout) {
  const meaning = {
    none: "",
    logprobs: "red: the policy gave this token a low probability when it was sampled",
    entropy: "violet: the policy's distribution had a high entropy at this token",
    kl: "violet: the policy has moved away from the reference model at this token",
    advantage: rollout.tokens?.advantages
      ? "green: the update makes this token likelier; red: less likely. Every token has its own advantage"
      : `green: the update makes the tokens likelier; red: less likely. All tokens share the advantage ${number(rollout.advantage)}`,
    loss: "green: the update raises this token's probability; red: lowers it; strength: its share in the step's loss " +
      "(weight × (−advantage + KL term))",
  }[statistic];
  return el("p", { class: "muted", data: { legend: statistic } }, rollout.tokens ? [scaleBar(statistic, rollout), " "] : null, meaning);
}

// The statistics of token i as the text of its tooltip.
function tokenTitle(rollout, i) {
  const view = rollout.tokens;
  const names = ["logprobs", "entropy", "kl", "loss"].filter((name) => view[name]);
  const lines = names.map((name) => {
    const probability = name === "logprobs" ? ` (p ${(100 * Math.exp(view[name][i])).toFixed(1)} %)` : "";
    return `${COLOURINGS[name]} ${number(view[name][i], 4)}${probability}`;
  });
  const advantage = number(view.advantages?.[i] ?? rollout.advantage);
  return [`token ${i + 1}: ${JSON.stringify(view.pieces[i])}`, ...lines, `advantage ${advantage}`].join("\n");
}

// Tokens of a rollout; statistics on hover. `marks`: [start, end, class], `hits`: [start, end], both in the completion.
export function tokens(rollout, statistic, marks = [], hits = []) {
  const view = rollout.tokens;
  if (!view) return markSpans(rollout.completion, marks, hits);
  const column = columnOf(rollout, statistic), scale = scaleOf(rollout, statistic);
  const fragment = document.createDocumentFragment();
  let start = view.prefill.length;
  if (view.prefill) fragment.append(el("span", { class: "prefill", title: "part of the prompt, not sampled" }, markHits(view.prefill, hits)));
  view.pieces.forEach((piece, i) => {
    const end = start + piece.length;
    const mark = marks.find((one) => start < one[1] && end > one[0] && piece.length);
    const span = el("span", { class: `token${mark ? ` ${mark[2]}` : ""}${hitClass(hits, start, end)}`, data: { i: String(i) } }, piece);
    if (column) span.style.background = tokenColour(statistic, column[i], scale);
    fragment.append(span);
    start = end;
  });
  const box = el("div", { class: "text tokens", dir: "ltr" }, fragment);
  box.addEventListener("pointerover", (event) => {
    const token = event.target.closest?.(".token");
    if (token && !token.title) token.title = tokenTitle(rollout, Number(token.dataset.i));
  });
  return box;
}

// ------------------------------------------------------------------------------------------------ reflection spans

// text[start:end] with the marks that lie in it, and the hits of a search.
export function markSpans(text, marks = [], hits = [], start = 0, end = text.length) {
  const box = el("div", { class: "text", dir: "ltr" });
  let position = start;
  for (const [markStart, markEnd, name, title] of [...marks].sort((a, b) => a[0] - b[0])) {
    if (markStart < position || markEnd > end) continue;
    box.append(markHits(text, hits, position, markStart),
      el("mark", { class: name, title: title ?? "" }, markHits(text, hits, markStart, markEnd)));
    position = markEnd;
  }
  box.append(markHits(text, hits, position, end));
  return box;
}

// The marks [start, end, class, title] of reflection spans.
export function marksOf(text, spans) {
  const unit = unitsOf(text);
  return spans.map((span) => [unit(span.start), unit(span.end), `cue ${span.label}`, spanTitle(span)]);
}

// Label, kind and outcome of a reflection span in words.
export function spanTitle(span) {
  const change = span.before || span.after ? `: ${span.before || "?"} → ${span.after || "?"}` : "";
  return `${span.label} (${span.kind}), ${span.outcome}${change}`;
}

// The text around a place: what is before it, the place in a mark of this class, and what is behind it.
export const excerptText = ({ excerpt: [before, place, after], cut: [isCutBefore, isCutAfter] }, className = "") =>
  el("div", { class: "text", dir: "ltr" }, isCutBefore ? "… " : "", before, place ? el("mark", { class: className }, place) : null, after,
    isCutAfter ? " …" : "");

// One side ("a" or "b") of a difference: the words that both texts have, and those of this side alone.
export function differenceSide(pieces, side) {
  return el("div", { class: "text diff", dir: "ltr", data: { side } },
    pieces.filter(([kind]) => kind === "same" || kind === side)
      .map(([kind, text]) => (kind === "same" ? text : el(kind === "a" ? "del" : "ins", {}, text))));
}
