// The replies of a published file (app/publish.py), which has no server: they are in the file, or made from its rollouts.

const element = document.getElementById("published");

// {selection, replies, groups, problems, gallery, failures, causes, rollouts, rows}; null in the dashboard.
export const published = element && JSON.parse(element.textContent);

// ------------------------------------------------------------------------------------------------ search for words

const TERM = /(-?)(?:"([^"]*)"|([^\s"]+))/g;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

// The text in lower case and without accents, with every character at its place.
const fold = (text) => text.replace(/\p{L}/gu, (letter) => {
  const plain = letter.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.length === letter.length ? plain : letter;
});

// The terms of a search: {pattern, isUnwanted}. The first group of the pattern is a place of the term in a folded text.
function termsOf(query) {
  return [...query.matchAll(TERM)].flatMap(([, minus, phrase, word]) => {
    const words = (fold(phrase ?? word).match(WORD) ?? []).map((one) => [...one].map((letter) => `${letter}\\p{M}*`).join(""));
    const end = word?.endsWith("*") ? "[\\p{L}\\p{N}\\p{M}]*" : "(?![\\p{L}\\p{N}])";
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}])(?=(${words.join("[^\\p{L}\\p{N}]+")}${end}))`, "gu");
    return words.length ? [{ pattern, isUnwanted: minus === "-" }] : [];
  });
}

// Whether a text matches the search.
const matches = (text, terms) => terms.every(({ pattern, isUnwanted }) => (fold(text).search(pattern) < 0) === isUnwanted);

// [start, end) of the wanted words in the text, in order, without overlaps.
function hitsOf(text, terms) {
  const hits = [], places = terms.filter((term) => !term.isUnwanted)
    .flatMap(({ pattern }) => [...fold(text).matchAll(pattern)].map(({ index, 1: words }) => [index, index + words.length]));
  for (const [start, end] of places.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    const previous = hits[hits.length - 1];
    if (previous && start < previous[1]) previous[1] = Math.max(previous[1], end);
    else hits.push([start, end]);
  }
  return hits;
}

// The text around its first hit, as pieces of which every second one is a hit.
function excerptOf(text, hits) {
  if (!hits.length) return [];
  const start = Math.max(0, hits[0][0] - 40), end = Math.min(text.length, start + 240), pieces = [start ? "…" : ""];
  let position = start;
  for (const [from, to] of hits.filter((hit) => hit[0] < end)) {
    pieces[pieces.length - 1] += text.slice(position, from);
    pieces.push(text.slice(from, Math.min(to, end)), "");
    position = Math.min(to, end);
  }
  pieces[pieces.length - 1] += text.slice(position, end) + (end < text.length ? "…" : "");
  return pieces.map((piece) => piece.replace(/\s+/g, " "));
}

// The number of characters before a position in the text, as the server counts them (an emoji is one).
const charactersBefore = (text, position) => [...text.slice(0, position)].length;

// ------------------------------------------------------------------------------------------------ filters

// The check of a column: of a number against "3", "3:8", "3:" or ":8", of a text against itself.
function check(key, text) {
  const [low, high] = text.includes(":") ? text.split(":") : [text, text];
  const [least, most] = [low === "" ? -Infinity : Number(low), high === "" ? Infinity : Number(high)];
  return (row) => {
    if (typeof row[key] !== "number") return String(row[key] ?? "") === text;
    if (Number.isNaN(least) || Number.isNaN(most)) throw new Error(`${key} is '${text}'; it must be a number, or LOW:HIGH with either left out`);
    return row[key] >= least && row[key] <= most;
  };
}

// By field that is no column: a function of its text that returns the check of a row.
const FILTERS = {
  correct: (text) => (row) => (row.verdict === "correct") === (text === "yes"),
  failure: (text) => (row) => published.causes[row.name] === text,
  label: (text) => (row) => published.rollouts[row.name].spans.some((span) => span.label === text),
  text(query) {
    const terms = termsOf(query);
    if (!terms.some((term) => !term.isUnwanted)) throw new Error(`nothing to search for in '${query}'`);
    return (row) => matches(published.rollouts[row.name].completion, terms);
  },
};

// ------------------------------------------------------------------------------------------------ replies

// A page of the rollouts that match the filter.
function rolloutPage({ where, order, offset = 0, limit = 100, near }) {
  const checks = Object.entries(where).map(([name, text]) => (FILTERS[name] ? FILTERS[name](text) : check(name, text)));
  const rows = published.rows.filter((row) => checks.every((holds) => holds(row)));
  const key = order.replace("-", ""), sign = order.startsWith("-") ? -1 : 1;
  if (key !== "step") rows.sort((a, b) => sign * (a[key] - b[key]));
  else if (sign < 0) rows.reverse();
  const terms = termsOf(where.text ?? "");
  const withExcerpt = (row) => {
    const { completion } = published.rollouts[row.name];
    return { ...row, excerpt: excerptOf(completion, hitsOf(completion, terms)) };
  };
  const place = rows.findIndex((row) => row.name === near);
  return {
    total: rows.length, place: place < 0 ? null : place, rows: rows.slice(offset, offset + limit).map(withExcerpt),
    num_indexed: 0, num_shards: 0, faults: {},
  };
}

// One rollout, with the hits of a search.
function rollout({ name, text }) {
  const one = published.rollouts[name];
  if (!one) throw new Error(`rollout ${name} is not in this file; the dashboard of the run has all`);
  const hits = hitsOf(one.completion, termsOf(text)).map((hit) => hit.map((position) => charactersBefore(one.completion, position)));
  return { formulas: { question: [one.question], completion: [one.completion] }, ...one, hits };
}

// A group with the texts of its members.
function group({ step, group: number }) {
  const one = published.groups[`${step}.${number}`];
  if (!one) throw new Error(`group ${number} of step ${step} is not in this file; the dashboard of the run has all`);
  return { ...one, members: one.members.map((member) => ({ ...member, completion: published.rollouts[member.name].completion })) };
}

const QUERIES = {
  rollouts: rolloutPage, rollout, group,
  problem: ({ id }) => published.problems[id],
  reflection({ label, offset = 0 }) {
    const own = published.gallery.filter((card) => !label || card.label === label);
    return { ...published.replies.reflection, gallery: own.slice(offset, offset + 12) };
  },
  failures({ cause, offset = 0 }) {
    const own = published.failures.filter((one) => !cause || one.cause === cause);
    return { ...published.replies.failures, examples: own.slice(offset, offset + 12) };
  },
};

// The reply to a query. An Error says what is not in the file.
export async function replyOf(query, values) {
  return QUERIES[query] ? QUERIES[query](values) : published.replies[query];
}
