// One question across the steps: pass rates, answers, what was learnt and what was forgotten.
import { difference } from "../text.js";
import { ask, card, el, empty, link, number, percent, put, select, verdict, visible } from "../core.js";

export async function open(root, page) {
  const { run, id } = page.params;
  if (!id) { put(root, empty("No problem is chosen.", "open one from Problems")); return {}; }
  const found = await ask("problem", { run, id });
  const visits = found.visits;
  let now = Math.max(0, visits.findIndex((v) => String(v.step) === page.params.step && (!page.params.group || String(v.group) === page.params.group)));
  if (!page.params.step) now = visits.length - 1;
  const rate = (v) => v.correct / v.size;
  const strip = el("div", { class: "visits", role: "listbox", "aria-label": "steps" }), one = el("div"), diff = el("div", { class: "grid two", data: { diff: "" } });
  const choose = (i) => { now = Math.max(0, Math.min(visits.length - 1, i)); page.set({ step: visits[now].step, group: visits[now].group }); drawVisit(); };

  function drawVisit() {
    [...strip.children].forEach((cell, i) => cell.setAttribute("aria-selected", String(i === now)));
    const v = visits[now];
    put(one, el("h3", {}, `Step ${v.step}: ${v.correct} of ${v.size} right, mean reward ${number(v.reward)}, ${number(v.tokens, 0)} tokens`),
      el("div", { class: "bars" }, v.answers.map((a) => el("div", { class: "bar", data: { answer: a.answer } }, el("span", { class: "name" }, visible(a.answer)), el("span", { class: "track" }, el("i", { class: a.right ? "up" : "down", style: { width: `${(100 * a.count) / v.size}%` } })), el("b", {}, String(a.count))))),
      el("p", {}, link("group", { run, step: v.step, group: v.group }, "the group side by side"), " · ", v.rollouts.map((r) => [link("rollouts", { run, rollout: r.name }, r.name), " ", verdict(r.verdict), " "])));
  }
  const names = visits.flatMap((v) => v.rollouts.map((r) => [r.name, `${r.name} ${r.verdict}`]));
  let a = page.params.a ?? visits[0].rollouts[0].name, b = page.params.b ?? visits[visits.length - 1].rollouts[0].name;
  async function compare() {
    const got = await ask("difference", { run, a, b });
    put(diff, ["a", "b"].map((side) => el("div", {}, el("small", {}, `${side.toUpperCase()}: ${got[side]}`), difference(got.pieces, side))));
  }
  put(strip, visits.map((v, i) => el("button", { role: "option", title: `step ${v.step}: ${v.correct} of ${v.size}`, data: { step: String(v.step), rate: String(rate(v)) }, style: { "--rate": String(rate(v)) }, onclick: () => choose(i) }, el("span", {}, String(v.step)), el("b", {}, percent(rate(v), 0)))));
  put(root, el("div", { class: "bar-row" }, el("h1", {}, visible(id))),
    el("div", { class: "question" }, el("small", {}, visible([found.source, found.subject, found.level].filter((v) => v !== null && v !== undefined).join(" · "))), el("div", { class: "text", dir: "ltr" }, found.question), el("small", {}, `gold: ${visible(found.gold)}`)),
    card("Across the steps", el("p", { data: { summary: "" } }, `sampled ${visits.length} time${visits.length > 1 ? "s" : ""} between steps ${found.steps[0]} and ${found.steps[1]}; first solved at step ${found.first_solved ?? "– (never)"}`,
      found.flips.map((flip) => [" · ", el("span", { class: `badge ${flip.learnt ? "good" : "bad"}` }, `${flip.learnt ? "became correct" : "became wrong"} between ${flip.from} and ${flip.to}`)])),
      strip, one),
    card("Two rollouts word by word", el("div", { class: "bar-row" }, select("A", names, a, (v) => { a = v; page.set({ a }); compare(); }), select("B", names, b, (v) => { b = v; page.set({ b }); compare(); })), diff));
  drawVisit();
  await compare();
  return { keys: { J: () => choose(now + 1), K: () => choose(now - 1), l: () => choose(now + 1), h: () => choose(now - 1), j: () => choose(now + 1), k: () => choose(now - 1) } };
}
