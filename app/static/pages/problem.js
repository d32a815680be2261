// One problem across the steps: pass rates, answers, and between which steps it was learned or forgotten.
import { bars } from "../chart.js";
import { ask, card, count, el, empty, joinParts, link, number, percent, put, table, tableRow, verdictBadge, visible } from "../core.js";
import { differenceCard } from "../difference.js";

// The answers of a visit as bars, and links to its rollouts.
function visitDetail(run, visit) {
  const answers = visit.answers.map((item) => ({ name: visible(item.answer), value: item.count, class: item.is_correct ? "up" : "down" }));
  return [
    el("h3", {}, `Step ${visit.step}: ${visit.correct} of ${visit.size} correct, mean reward ${number(visit.reward)}, ${number(visit.tokens, 0)} tokens`),
    bars(answers, visit.size),
    el("p", {}, link("group", { run, step: visit.step, group: visit.group }, "the group side by side"), " · ",
      visit.rollouts.map((rollout) => [link("rollouts", { run, rollout: rollout.name }, rollout.name), " ", verdictBadge(rollout.verdict), " "])),
  ];
}

// How often the problem was sampled, when it was first solved, and its flips.
function summary(problem) {
  const [first, last] = problem.steps, { visits, first_solved: solved } = problem;
  const flip = ({ from, to, became_correct: isCorrect }) =>
    [" · ", el("span", { class: `badge ${isCorrect ? "good" : "bad"}` }, `became ${isCorrect ? "correct" : "wrong"} between ${from} and ${to}`)];
  return el("p", { data: { summary: "" } }, `sampled ${count(visits.length, "time")} between steps ${first} and ${last}; `,
    solved === null ? "never solved" : `first solved at step ${solved}`, problem.flips.map(flip));
}

// The groups of other problems of the same kind that are nearest in steps, with this problem's first in its place.
function neighbourTable(run, { neighbours, visits, problem, level, question }) {
  const [{ step, group, correct, size }] = visits, isBefore = (row) => row.step < step || (row.step === step && row.grp < group);
  const own = { step, grp: group, problem, level, question, correct, size, is_first: true };
  const rows = [...neighbours.filter(isBefore), own, ...neighbours.filter((row) => !isBefore(row))];
  const line = (row) => tableRow([
    number(row.step), `${row.correct} of ${row.size}`, el("span", { class: "track" }, el("i", { class: "up", style: { width: `${(100 * row.correct) / row.size}%` } })),
    row.is_first ? "first time" : "again", row.level ?? "–",
    row === own ? visible(row.problem) : link("problem", { run, id: row.problem, step: row.step, group: row.grp }, visible(row.problem)),
    visible(row.question).slice(0, 100),
  ], { class: row === own ? "current" : "", data: { neighbour: row.problem } });
  return table(["step", "correct", "", "sampled", "level", "problem", "question"], rows.map(line));
}

export async function open(root, page) {
  const { run, id } = page.params;
  if (!id) { put(root, empty(["No problem is selected. Choose one from ", link("problems", { run, by: "problem" }, "Problems"), "."])); return {}; }
  const problem = await ask("problem", { run, id }), { visits } = problem;
  const isInAddress = (visit) => String(visit.step) === page.params.step && (!page.params.group || String(visit.group) === page.params.group);
  let index = page.params.step ? Math.max(0, visits.findIndex(isInAddress)) : visits.length - 1;
  const names = visits.flatMap((visit) => visit.rollouts.map((rollout) => [rollout.name, `${rollout.name} ${rollout.verdict}`]));
  const [otherName] = visits.length > 1 ? [visits[visits.length - 1].rollouts[0]?.name] : names[names.length - 1];
  const pair = { a: page.params.a ?? names[0][0], b: page.params.b ?? otherName };
  const strip = el("div", { class: "visits", role: "listbox", "aria-label": "steps" }), detail = el("div");
  const difference = differenceCard({ title: "Difference of two rollouts, word by word", run, options: names, pair, page });

  // Select a visit by its index.
  function choose(next) {
    index = Math.max(0, Math.min(visits.length - 1, next));
    page.set({ step: visits[index].step, group: visits[index].group });
    drawVisit();
  }
  function drawVisit() {
    [...strip.children].forEach((cell, i) => cell.setAttribute("aria-selected", String(i === index)));
    put(detail, visitDetail(run, visits[index]));
  }
  put(strip, visits.map((visit, i) => {
    const rate = visit.correct / visit.size;
    return el("button", {
      role: "option", title: `step ${visit.step}: ${visit.correct} of ${visit.size}`, data: { step: String(visit.step) },
      style: { "--rate": String(rate) }, onclick: () => choose(i),
    }, el("span", {}, String(visit.step)), el("b", {}, percent(rate, 0)));
  }));
  put(root, el("div", { class: "bar-row" }, el("h1", {}, visible(id))),
    el("div", { class: "question" }, el("small", {}, joinParts([problem.source, problem.subject, problem.level])),
      el("div", { class: "text", dir: "ltr" }, problem.question), el("small", {}, `gold: ${visible(problem.gold)}`)),
    card("Pass rate by step", summary(problem), strip, detail),
    problem.neighbours.length ? card("Problems of the same family at steps nearby", neighbourTable(run, problem)) : null,
    difference.card);
  drawVisit();
  await difference.draw();
  const next = () => choose(index + 1), previous = () => choose(index - 1);
  return { keys: { J: next, K: previous, l: next, h: previous, j: next, k: previous } };
}
