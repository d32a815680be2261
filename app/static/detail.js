// One rollout in full.
import { about, COLOURINGS, legend, marked, marksOf, rendered, tokens } from "./text.js";
import { ask, copy, el, link, number, put, select, signed, verdict, visible } from "./core.js";

export async function detail(pane, { run, name, page, onchange }) {
  const how = page.params.colour ?? "none", isSet = page.params.set === "1";
  pane.dataset.state = "loading";
  const found = await ask("rollout", { run, name, rendered: isSet });
  const [start, end] = found.think;
  const colours = found.tokens ? Object.entries(COLOURINGS).filter(([key]) => ["none", "advantage"].includes(key) || found.tokens[key]) : [["none", "no colour"]];
  const redraw = (values) => { page.set(values); return detail(pane, { run, name, page, onchange }); };
  const marks = marksOf(found.spans);
  const mate = (by) => { const i = found.mates.findIndex((m) => m.sample === found.sample) + by; const next = found.mates[i]; if (next) onchange(`${found.step}.${found.group}.${next.sample}`); };
  const elsewhere = (by) => { const i = found.seen.findIndex((s) => s.step === found.step && s.grp === found.group) + by; const next = found.seen[i]; if (next) onchange(`${next.step}.${next.grp}.0`); };

  const body = isSet
    ? el("div", { class: "text set" }, rendered(found.rendered.completion))
    : how === "none" ? parts(found, marks, start, end) : [legend(how, found), tokens(found, how, marks)];
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
      link("play", { model: run, question: found.question, gold: found.gold, rule: found.verifier }, "ask again")),
    el("div", { class: "question" }, el("small", {}, visible([found.problem_id, found.subject, found.level].filter((v) => v !== null && v !== undefined).join(" · "))), isSet ? el("div", { class: "text" }, rendered(found.rendered.question)) : el("div", { class: "text", dir: "ltr" }, found.question)),
    el("dl", { class: "facts" },
      fact("verdict", [verdict(found.verdict), found.layer ? `${["correct", "wrong"].includes(found.verdict) ? " decided by" : ":"} ${found.layer}` : ""]), fact("answer", visible(found.extracted ?? "none")), fact("gold", visible(found.gold)),
      fact("reward", [number(found.reward), el("small", {}, ` = ${Object.entries(found.rewards).map(([part, value]) => `${part} ${number(value)}`).join(", ")}`)]),
      fact("advantage", signed(found.advantage, 3)), fact("tokens", `${number(found.num_tokens)}${found.finish ? `, ended by ${found.finish}` : ""}`), fact("well-formed", found.well_formed ? "yes" : "no"), fact("policy", `after ${found.policy_version ?? "?"} steps`)),
    found.tokens_fault ? el("p", { class: "muted" }, `Tokens are not shown: ${visible(found.tokens_fault)}`) : null,
    body,
    found.spans.length ? el("details", { class: "spans", open: true }, el("summary", {}, `${found.spans.length} second thought${found.spans.length > 1 ? "s" : ""}`),
      el("ol", {}, found.spans.map((span) => el("li", { class: span.label }, el("b", {}, found.completion.slice(span.start, span.end)), ` ${about(span)}`)))) : null,
    el("details", {}, el("summary", {}, "prompt"), el("div", { class: "text", dir: "ltr" }, found.prompt ?? "")),
    el("div", { class: "note" }, note, saved));

  let span = -1;
  const jump = (by) => {
    const all = [...pane.querySelectorAll("mark.cue, .t.cue")];
    if (!all.length) return;
    span = (span + by + all.length) % all.length;
    all.forEach((one, i) => one.classList.toggle("now", i === span));
    all[span].scrollIntoView({ block: "center" });
  };
  const names = colours.map(([key]) => key);
  pane.keys = {
    h: () => mate(-1), l: () => mate(1), J: () => elsewhere(1), K: () => elsewhere(-1), "[": () => jump(-1), "]": () => jump(1),
    c: () => redraw({ colour: names[(names.indexOf(how) + 1) % names.length].replace(/^none$/, ""), set: "" }), m: () => redraw({ set: isSet ? "" : 1, colour: "" }),
    s: () => annotate({ star: !found.note?.star }), n: () => note.focus(),
  };
  pane.dataset.state = "ready";
  pane.dataset.rollout = name;
}

// Think and answer apart, each with its own second thoughts.
function parts(found, marks, start, end) {
  const text = found.completion;
  const cut = (from, to) => marked(text.slice(from, to), marks.filter(([a, b]) => a >= from && b <= to).map(([a, b, ...rest]) => [a - from, b - from, ...rest]));
  const before = text.slice(0, start).replace("<think>", "").trim();
  const after = end + (text.startsWith("</think>", end) ? "</think>".length : 0);
  return el("div", { class: "parts" },
    before ? el("section", { data: { part: "before" } }, el("h3", {}, "before the thought"), cut(0, start)) : null,
    el("section", { data: { part: "think" } }, el("h3", {}, text.includes("<think>") ? "thought" : "response"), cut(start, end)),
    after < text.length ? el("section", { data: { part: "answer" } }, el("h3", {}, "answer"), cut(after, text.length)) : null);
}
