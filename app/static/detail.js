// One rollout in full: facts, text or tokens, reflection spans, star and note.
import { ask, checkbox, copy, count, el, fault, isOffered, joinParts, link, number, put, select, verdictBadge, visible, withSign } from "./core.js";
import { COLOURINGS, legend, markSpans, marksOf, renderFormulas, spanTitle, tokens, unitsOf } from "./text.js";

let saving = Promise.resolve();  // changes of notes, one after the other: each is sent with what the one before left
let unsaved = 0;  // changes that were not answered yet

// Show `children` in the pane instead of a rollout, also instead of one that is on its way.
export function clearPane(pane, ...children) {
  pane.request = pane.keys = null;
  delete pane.dataset.state;
  delete pane.dataset.rollout;
  put(pane, ...children);
}

// Show a rollout in the pane, unless another one is asked for meanwhile. `onchange` is called with the name of another
// rollout that is to be shown.
export async function detail(pane, { run, name, page, onchange }) {
  const statistic = page.params.colour ?? (page.params.tok ? "logprobs" : "none"), withFormulas = page.params.formulas === "1";
  const { text = "" } = page.params;
  const request = pane.request = {};  // replies may arrive in another order
  pane.dataset.state = "loading";
  pane.keys = null;  // those of the rollout before would star that one
  let rollout;
  try {
    await saving;  // its note may be the one that is being saved
    rollout = await ask("rollout", { run, name, with_formulas: withFormulas, text, with_tokens: statistic !== "none" && !withFormulas });
  } catch (error) {
    if (pane.request === request) clearPane(pane, fault(error));
    return;
  }
  if (pane.request !== request) return;
  const redraw = (values) => { page.set(values); return detail(pane, { run, name, page, onchange }); };
  const unit = unitsOf(rollout.completion);
  const view = { run, name, rollout, statistic, withFormulas, query: text, unit, hits: rollout.hits.map((hit) => hit.map(unit)), redraw };
  const notes = noteFields(view);
  const walkSpans = walk(pane, "mark.cue, .token.cue"), walkHits = walk(pane, ".hit:not(.rest)");
  put(pane, toolbar(view, notes.star), question(view), facts(rollout), text ? hitBar(view, walkHits) : null,
    rollout.tokens_fault ? el("p", { class: "muted" }, `Tokens are not shown: ${visible(rollout.tokens_fault)}`) : null,
    body(view), spanList(view),
    el("details", {}, el("summary", {}, "prompt"), el("div", { class: "text", dir: "ltr" }, rollout.prompt ?? "")),
    isOffered("annotate") ? el("div", { class: "note" }, notes.note, notes.status) : null);
  pane.keys = {
    ...neighbourKeys(rollout, onchange),
    "[": () => walkSpans(-1), "]": () => walkSpans(1), ",": () => walkHits(-1), ".": () => walkHits(1),
    c: () => redraw({ colour: nextColouring(view), formulas: "" }), m: () => redraw({ formulas: withFormulas ? "" : 1, colour: "" }),
    ...(isOffered("annotate") ? { s: notes.toggleStar, n: () => notes.note.focus() } : {}),
  };
  pane.scrollTop = 0;
  walkHits(1);
  linkTokens(pane, page);
  pane.dataset.state = "ready";
  pane.dataset.rollout = name;
}

// The statistics that this rollout's tokens have: [name, title].
function colourings({ statistics }) {
  return Object.entries(COLOURINGS).filter(([key]) => key === "none" || (statistics && (key === "advantage" || statistics.includes(key))));
}

// The statistic after the present one; "" is no colour.
function nextColouring({ rollout, statistic }) {
  const names = colourings(rollout).map(([key]) => key);
  return names[(names.indexOf(statistic) + 1) % names.length].replace(/^none$/, "");
}

// The keys that lead to other rollouts: of the group (h, l), and of the problem at other steps (J, K).
function neighbourKeys(rollout, onchange) {
  const inGroup = (by) => {
    const next = rollout.members[rollout.members.findIndex((member) => member.sample === rollout.sample) + by];
    if (next) onchange(`${rollout.step}.${rollout.group}.${next.sample}`);
  };
  const isHere = (visit) => visit.step === rollout.step && visit.group === rollout.group;
  const acrossSteps = (by) => {
    const next = rollout.visits[rollout.visits.findIndex(isHere) + by];
    if (next) onchange(`${next.step}.${next.group}.0`);
  };
  return { h: () => inGroup(-1), l: () => inGroup(1), J: () => acrossSteps(1), K: () => acrossSteps(-1) };
}

// The star, the note and the message whether they are saved.
function noteFields({ run, name, rollout }) {
  const status = el("small", { class: "muted", role: "status" });
  const isStarred = () => Boolean(rollout.note?.star);
  const star = el("button", { class: "star", title: "star (s)", onclick: () => toggleStar() });
  const note = el("textarea", {
    rows: "2", "aria-label": "note", placeholder: "a note (n); #tags", onchange: (event) => save({ note: event.target.value }),
  }, rollout.note?.note ?? "");
  function drawStar() {
    star.textContent = isStarred() ? "★" : "☆";
    star.setAttribute("aria-pressed", String(isStarred()));
  }
  function save(change) {
    status.textContent = "saving";
    unsaved += 1;
    saving = saving.then(() => send(change));
  }
  async function send(change) {
    try {
      rollout.note = await ask("annotate", { run, name, star: isStarred(), note: rollout.note?.note ?? "", ...change });
      drawStar();
      if (unsaved === 1) status.textContent = "saved";
    } catch (error) { status.textContent = error.message; }
    unsaved -= 1;
  }
  const toggleStar = () => save({ star: !isStarred() });
  drawStar();
  return { star, note, status, toggleStar };
}

// The name, the choices of the view and the links.
function toolbar({ run, name, rollout, statistic, withFormulas, redraw }, star) {
  return el("div", { class: "bar-row" }, el("h2", {}, `rollout ${name}`), isOffered("annotate") ? star : null,
    select("colour", colourings(rollout), statistic, (value) => redraw({ colour: value === "none" ? "" : value, formulas: "" })),
    checkbox("render formulas", withFormulas, (checked) => redraw({ formulas: checked ? 1 : "", colour: "" })),
    el("button", { onclick: () => copy(location.href) }, "copy link"),
    el("button", { onclick: () => copy(rollout.completion) }, "copy text"),
    link("group", { run, step: rollout.step, group: rollout.group }, "its group"),
    link("problem", { run, id: rollout.problem_id }, "the problem across steps"),
    isOffered("chat") ? link("chat", { run, question: rollout.question, gold: rollout.gold, verifier: rollout.verifier }, "sample again") : null);
}

// The problem's id, family and level, and its question.
function question({ rollout, withFormulas }) {
  return el("div", { class: "question" }, el("small", {}, joinParts([rollout.problem_id, rollout.subject, rollout.level])),
    el("div", { class: "text", dir: "ltr" }, withFormulas ? renderFormulas(rollout.formulas.question) : rollout.question));
}

// Verdict, answer, reward and the other facts of the rollout.
function facts(rollout) {
  const fact = (key, value) => [el("dt", {}, key), el("dd", { data: { fact: key } }, value)];
  const layer = `${["correct", "wrong"].includes(rollout.verdict) ? " decided by" : ":"} ${rollout.layer}`;
  const rewardParts = Object.entries(rollout.rewards).map(([part, value]) => `${part} ${number(value)}`).join(", ");
  return el("dl", { class: "facts" },
    fact("verdict", [verdictBadge(rollout.verdict), rollout.layer ? layer : ""]),
    fact("answer", visible(rollout.extracted ?? "none")),
    fact("gold", visible(rollout.gold)),
    fact("reward", [number(rollout.reward), rewardParts ? el("small", {}, `, the weighted sum of ${rewardParts}`) : null]),
    fact("advantage", withSign(rollout.advantage, 3)),
    fact("tokens", `${number(rollout.num_tokens)}${rollout.finish ? `, ended by ${rollout.finish}` : ""}`),
    rollout.observations.length ? fact("tool calls", `${rollout.observations.length}, ${rollout.tool_errors} failed`) : null,
    fact("well-formed", rollout.well_formed ? "yes" : "no"),
    fact("policy", rollout.policy_version === null ? "unknown" : `after ${count(rollout.policy_version, "step")}`));
}

// The number of hits of the search, with buttons from one to the next.
function hitBar({ query, hits }, walkHits) {
  return el("div", { class: "bar-row", data: { hits: String(hits.length) } },
    hits.length ? `${count(hits.length, "hit")} of ` : "no hit here of ", el("b", {}, visible(query)),
    hits.length > 1 ? [
      el("button", { onclick: () => walkHits(-1), title: "previous hit (,)" }, "← hit"),
      el("button", { onclick: () => walkHits(1), title: "next hit (.)" }, "hit →"),
    ] : null);
}

// The completion: with formulas, as coloured tokens, or in its parts.
function body({ rollout, statistic, withFormulas, hits, unit }) {
  const answers = rollout.observations.map((one) => [...one.map(unit), "observation", "returned by a tool"]);
  const marks = [...marksOf(rollout.completion, rollout.spans), ...answers];
  if (withFormulas) return el("div", { class: "text formulas" }, renderFormulas(rollout.formulas.completion, hits));
  if (statistic !== "none") return [legend(statistic, rollout), tokens(rollout, statistic, marks, hits)];
  return parts(rollout.completion, marks, hits, ...rollout.think.map(unit));
}

// The reflection spans with their outcomes.
function spanList({ rollout, unit }) {
  if (!rollout.spans.length) return null;
  const phrase = (span) => el("b", {}, rollout.completion.slice(unit(span.start), unit(span.end)));
  return el("details", { class: "spans", open: true }, el("summary", {}, count(rollout.spans.length, "reflection span")),
    el("ol", {}, rollout.spans.map((span) => el("li", { class: span.label }, phrase(span), ` ${spanTitle(span)}`))));
}

// Outline the tokens of the address (tok=12 or tok=12-20, from 1 on). A click on a token puts it there, with Shift a range.
function linkTokens(pane, page) {
  const all = [...pane.querySelectorAll(".token")];
  const range = () => (page.params.tok ?? "").split("-").map(Number);
  function draw() {
    const [first, last = first] = range();
    all.forEach((token, i) => token.classList.toggle("linked", i + 1 >= first && i + 1 <= last));
  }
  pane.querySelector(".tokens")?.addEventListener("click", (event) => {
    const i = all.indexOf(event.target.closest(".token")) + 1, [first] = range();
    if (!i) return;
    page.set({ tok: event.shiftKey && first ? `${Math.min(first, i)}-${Math.max(first, i)}` : i, colour: page.params.colour ?? "logprobs" });
    draw();
  });
  draw();
  walk(pane, ".token.linked")(1);
}

// A function that goes from one of the pane's elements to the next: outlines it and scrolls to it.
function walk(pane, selector) {
  let position = -1;
  return (by) => {
    const all = [...pane.querySelectorAll(selector)];
    if (!all.length) return;
    position = (position + by + all.length) % all.length;
    all.forEach((element, i) => element.classList.toggle("current", i === position));
    const distance = all[position].getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 2;
    if (getComputedStyle(pane).overflowY === "visible") all[position].scrollIntoView({ block: "center" });
    else pane.scrollTop += distance;  // the pane alone: the page stays where it is
  };
}

// Thought and answer apart, each with its marks. A tag is left out unless a search hits it.
function parts(text, marks, hits, start, end) {
  const isHit = (from, to) => hits.some(([a, b]) => a < to && b > from);
  const tagStart = Math.max(0, start - "<think>".length);
  const answerStart = end + (text.startsWith("</think>", end) ? "</think>".length : 0);
  const section = (part, title, from, to) =>
    el("section", { data: { part } }, el("h3", {}, title), markSpans(text, marks, hits, from, to));
  return el("div", { class: "parts" },
    text.slice(0, tagStart).trim() ? section("before", "before the thought", 0, tagStart) : null,
    section("think", text.includes("<think>") ? "thought" : "response",
      isHit(tagStart, start) ? tagStart : start, isHit(end, answerStart) ? answerStart : end),
    answerStart < text.length ? section("answer", "answer", answerStart, text.length) : null);
}
