// A list of a run's problems from which one is picked, to ask a model about it.
import { count, el, fault, latestOnly, number, percent, put, select, table, tableRow, visible } from "./core.js";

const PAGE_SIZE = 20;
const ORDERS = [["rate", "lowest pass rate"], ["-rate", "highest pass rate"], ["flips", "most flips"], ["problem", "name"], ["first sampled", "first sampled"]];

// The picker as an element. `onpick` is called with {question, gold, verifier} of a problem.
export function problemPicker(run, onpick) {
  const view = { sort: "rate", subject: "", offset: 0 }, body = el("div");
  const askProblem = latestOnly(), askProblems = latestOnly();
  const box = el("details", { ontoggle: () => { if (box.open && !body.children.length) load(); } },
    el("summary", {}, `pick a problem of run ${run}`), body);
  const change = (values) => { Object.assign(view, { offset: 0, ...values }); return load(); };

  async function pick(id) {
    const problem = await askProblem("problem", { run, id });
    if (!problem) return;
    for (const row of body.querySelectorAll("tr")) row.classList.toggle("current", row.dataset.pick === id);
    onpick({ question: problem.question, gold: problem.gold, verifier: problem.verifier });
  }
  const line = (row) => tableRow([
    el("button", { onclick: () => pick(row.problem) }, "pick"), percent(row.rate, 0), `${number(row.correct)} of ${number(row.size)}`,
    visible([row.subject, row.level].filter((part) => part !== null).join(" ")), visible(row.question).slice(0, 160),
  ], { data: { pick: row.problem } });

  async function load() {
    try {
      const data = await askProblems("problems", { run, by: "problem", ...view, limit: PAGE_SIZE });
      if (!data) return;
      const last = Math.min(data.total, view.offset + PAGE_SIZE);
      put(body, el("div", { class: "bar-row" },
        select("order of problems", ORDERS, view.sort, (sort) => change({ sort })),
        select("family", [["", "all"], ...data.subjects.map((name) => [name, name])], view.subject, (subject) => change({ subject })),
        el("button", { disabled: !data.total, onclick: async () => {
          await change({ offset: PAGE_SIZE * Math.floor((Math.random() * data.total) / PAGE_SIZE) });
          const rows = body.querySelectorAll("[data-pick]");
          await pick(rows[Math.floor(Math.random() * rows.length)].dataset.pick);
        } }, "any problem"),
        view.offset > 0 ? el("button", { onclick: () => change({ offset: view.offset - PAGE_SIZE }) }, "← previous") : null,
        last < data.total ? el("button", { onclick: () => change({ offset: view.offset + PAGE_SIZE }) }, "next →") : null,
        el("span", { class: "muted" }, `${number(last && view.offset + 1)} to ${number(last)} of ${count(data.total, "problem")}; pass rates of the training`)),
      table(null, data.rows.map(line)));
    } catch (error) { put(body, fault(error)); }
  }
  return box;
}
