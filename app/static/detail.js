// One rollout in full.
import { about, COLOURINGS, legend, marked, marksOf, rendered, tokens, unitsOf } from "./text.js";
import { ask, copy, el, link, number, put, select, signed, verdict, visible } from "./core.js";

export async function detail(pane, { run, name, page, onchange }) {
  const how = page.params.colour ?? "none", isSet = page.params.set === "1", query = page.params.text ?? "";
  pane.dataset.state = "loading";
  const found = await ask("rollout", { run, name, rendered: isSet, text: query });
  const unit = unitsOf(found.completion), hits = found.hits.map((hit) => hit.map(unit));
  const colours = found.tokens ? Object.entries(COLOURINGS).filter(([key]) => ["none", "advantage"].includes(key) || found.tokens[key]) : [["none", "no colour"]];
  const redraw = (values) => { page.set(values); return detail(pane, { run, name, page, onchange }); };
  const marks = marksOf(found.completion, found.spans);
  const mate = (by) => { const i = found.mates.findIndex((m) => m.sample === found.sample) + by; const next = found.mates[i]; if (next) onchange(`${found.step}.${found.group}.${next.sample}`); };
  const elsewhere = (by) => { const i = found.seen.findIndex((s) => s.step === found.step && s.grp === found.group) + by; const next = found.seen[i]; if (next) onchange(`${next.step}.${next.grp}.0`); };

  const body = isSet
    ? el("div", { class: "text set" }, rendered(found.rendered.completion, hits))
    : how === "none" ? parts(found.completion, marks, hits, ...found.think.map(unit)) : [legend(how, found), tokens(found, how, marks, hits)];
  const fact = (key, value) => [el("dt", {}, key), el("dd", { data: { fact: key } }, value)];
  const star = el("button", { class: "star", "aria-pressed": String(Boolean(found.note?.star)), title: "star (s)", onclick: () => annotate({ star: !found.note?.star }) }, found.note?.star ? "★" : "☆");
  const note = el("textarea", { rows: "2", "aria-label": "note", placeholder: "a note (n)", onchange: (event) => annotate({ note: event.target.value }) }, found.note?.note ?? "");
  const saved = el("small", { class: "muted" });
  async function annotate(change) {
    try {
      found.note = await ask("annotate", { run, name, star: found.note?.star ?? false, note: found.note?.note ?? "", ...change });
      star.textContent = found.note.star ? "★" : "☆"; star.setAttribute("aria-pressed", String(found.note.star)); saved.textContent = "kept";
    } catch (error) { saved.textContent = error.message; }
  }
  put(pane,
    el("div", { class: "bar-row" }, el("h2", {}, `rollout ${name}`), star,
      select("colour", colours, how, (v) => redraw({ colour: v === "none" ? "" : v, set: "" })),
      el("label", {}, el("input", { type: "checkbox", checked: isSet, "aria-label": "set formulas", onchange: (e) => redraw({ set: e.target.checked ? 1 : "", colour: "" }) }), " set formulas"),
      el("button", { onclick: () => copy(location.href) }, "copy link"), el("button", { onclick: () => copy(found.completion) }, "copy text"),
      link("group", { run, step: found.step, group: found.group }, "its group"), link("problem", { run, id: found.problem_id }, "the problem across steps"),
      link("play", { run, question: found.question, gold: found.gold, rule: found.verifier }, "ask again")),
    el("div", { class: "question" }, el("small", {}, visible([found.problem_id, found.subject, found.level].filter((v) => v !== null && v !== undefined).join(" · "))), isSet ? el("div", { class: "text" }, rendered(found.rendered.question)) : el("div", { class: "text", dir: "ltr" }, found.question)),
    el("dl", { class: "facts" },
      fact("verdict", [verdict(found.verdict), found.layer ? `${["correct", "wrong"].includes(found.verdict) ? " decided by" : ":"} ${found.layer}` : ""]), fact("answer", visible(found.extracted ?? "none")), fact("gold", visible(found.gold)),
      fact("reward", [number(found.reward), el("small", {}, ` = ${Object.entries(found.rewards).map(([part, value]) => `${part} ${number(value)}`).join(", ")}`)]),
      fact("advantage", signed(found.advantage, 3)), fact("tokens", `${number(found.num_tokens)}${found.finish ? `, ended by ${found.finish}` : ""}`), fact("well-formed", found.well_formed ? "yes" : "no"), fact("policy", `after ${found.policy_version ?? "?"} steps`)),
    query ? el("div", { class: "bar-row", data: { hits: String(hits.length) } }, hits.length ? `${number(hits.length)} hit${hits.length > 1 ? "s" : ""} of ` : "no hit here of ", el("b", {}, visible(query)),
      hits.length > 1 ? [el("button", { onclick: () => toHit(-1), title: "previous hit (,)" }, "← hit"), el("button", { onclick: () => toHit(1), title: "next hit (.)" }, "hit →")] : null) : null,
    found.tokens_fault ? el("p", { class: "muted" }, `Tokens are not shown: ${visible(found.tokens_fault)}`) : null,
    body,
    found.spans.length ? el("details", { class: "spans", open: true }, el("summary", {}, `${found.spans.length} reflection span${found.spans.length > 1 ? "s" : ""}`),
      el("ol", {}, found.spans.map((span) => el("li", { class: span.label }, el("b", {}, found.completion.slice(unit(span.start), unit(span.end))), ` ${about(span)}`)))) : null,
    el("details", {}, el("summary", {}, "prompt"), el("div", { class: "text", dir: "ltr" }, found.prompt ?? "")),
    el("div", { class: "note" }, note, saved));

  const jump = walk(pane, "mark.cue, .t.cue"), toHit = walk(pane, ".hit:not(.rest)");
  const names = colours.map(([key]) => key);
  pane.keys = {
    h: () => mate(-1), l: () => mate(1), J: () => elsewhere(1), K: () => elsewhere(-1), "[": () => jump(-1), "]": () => jump(1), ",": () => toHit(-1), ".": () => toHit(1),
    c: () => redraw({ colour: names[(names.indexOf(how) + 1) % names.length].replace(/^none$/, ""), set: "" }), m: () => redraw({ set: isSet ? "" : 1, colour: "" }),
    s: () => annotate({ star: !found.note?.star }), n: () => note.focus(),
  };
  pane.scrollTop = 0;
  toHit(1);
  pane.dataset.state = "ready";
  pane.dataset.rollout = name;
}

// From one of the pane's elements to the next: it is outlined and scrolled to.
function walk(pane, selector) {
  let at = -1;
  return (by) => {
    const all = [...pane.querySelectorAll(selector)];
    if (!all.length) return;
    at = (at + by + all.length) % all.length;
    all.forEach((one, i) => one.classList.toggle("now", i === at));
    const away = all[at].getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 2;
    if (getComputedStyle(pane).overflowY === "visible") all[at].scrollIntoView({ block: "center" });
    else pane.scrollTop += away;  // the pane alone: the page stays where it is
  };
}

// Think and answer apart, each with its own second thoughts. A tag is left out unless a search hits it.
function parts(text, marks, hits, start, end) {
  const isHit = (from, to) => hits.some(([a, b]) => a < to && b > from);
  const opening = Math.max(0, start - "<think>".length), after = end + (text.startsWith("</think>", end) ? "</think>".length : 0);
  const before = text.slice(0, opening).trim();
  const from = isHit(opening, start) ? opening : start, to = isHit(end, after) ? after : end;
  const cut = (a, b) => marked(text, marks, hits, a, b);
  return el("div", { class: "parts" },
    before ? el("section", { data: { part: "before" } }, el("h3", {}, "before the thought"), cut(0, opening)) : null,
    el("section", { data: { part: "think" } }, el("h3", {}, text.includes("<think>") ? "thought" : "response"), cut(from, to)),
    after < text.length ? el("section", { data: { part: "answer" } }, el("h3", {}, "answer"), cut(after, text.length)) : null);
}
