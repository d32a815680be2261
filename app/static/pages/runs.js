// All runs: their state, their progress and their scores; the pipelines as rows of stages.
import { age, ask, consensus, count, duration, el, empty, interval, link, number, percent, put, table, updateAges } from "../core.js";

// The orders of the list: what a row is sorted by.
const SORTS = {
  started: (row) => -(row.started_at ?? 0), name: (row) => row.name, step: (row) => -(row.step ?? 0),
  "pass@1": (row) => -(row.metrics?.["pass@1"] ?? -1),
};

// A small curve of shares without axes.
function sparkline(values) {
  const label = `correct, from ${percent(values[0])} to ${percent(values[values.length - 1])}`;
  const canvas = el("canvas", { width: "120", height: "24", class: "spark", role: "img", "aria-label": label });
  requestAnimationFrame(() => {
    const context = canvas.getContext("2d");
    context.strokeStyle = getComputedStyle(canvas).color;
    context.lineWidth = 1.5;
    context.beginPath();
    values.forEach((value, i) => context[i ? "lineTo" : "moveTo"](2 + (i / Math.max(1, values.length - 1)) * 116, 22 - value * 20));
    context.stroke();
  });
  return canvas;
}

// The state of a run, and the number of its alarms.
function stateCell(row) {
  const alarms = row.alarms ? el("span", { class: "badge bad", data: { alarms: row.alarms } }, count(row.alarms, "alarm")) : null;
  const title = row.status === "trained" ? "all steps done; the final evaluation is missing, and --resume makes it" : "";
  return el("td", {}, el("span", { class: `dot ${row.status}`, title }, row.status), alarms ? [" ", alarms] : null);
}

// A row of the list; `choice`: its checkbox.
function runRow(row, choice) {
  if (row.fault) {
    return el("tr", { class: "damaged" }, el("td", {}), el("td", {}, row.name),
      el("td", { colspan: "9", class: "wrap" }, el("span", { class: "badge bad" }, "damaged"), ` ${row.fault}`));
  }
  const [consName, cons] = consensus(row) ?? [];
  const firstPage = row.step || row.status !== "imported" ? "overview" : "rollouts";
  return el("tr", { data: { run: row.name } },
    el("td", {}, choice),
    el("td", {}, link(firstPage, { run: row.name }, row.name)),
    stateCell(row),
    el("td", { class: "number" }, `${number(row.step)} / ${number(row.steps)}`),
    el("td", { class: "number" }, percent(row.metrics["pass@1"])),
    el("td", { class: "number" }, percent(cons), el("small", {}, consName?.replace("cons", " ") ?? "")),
    el("td", { class: "number" }, duration(row.seconds_left)),
    el("td", {}, row.model ?? "–"), el("td", {}, row.algorithm ?? "–"),
    el("td", {}, row.correct.length > 1 ? sparkline(row.correct) : "–"),
    el("td", {}, age(row.started_at)));
}

// The figure of a stage: pass@1 on the held-out problems, accuracy of a reward model, or sampled tokens.
function stageFigure(stage) {
  const estimate = stage["pass@1"] ?? stage.accuracy, name = stage["pass@1"] ? "pass@1" : "accuracy";
  if (estimate) return el("b", { title: `95 % interval ${interval(estimate)}` }, `${name} ${percent(estimate.value)}`);
  return stage.sampled_tokens ? `${number(stage.sampled_tokens)} tokens` : null;
}

// A pipeline: its stages in order, with the states of their runs and the results of those that are done.
function pipelineCard({ name, stages, fault }, runs) {
  const tiles = stages.map((stage) => {
    const run = runs.get(stage.run), state = stage.is_done ? "done" : run?.status ?? "waiting";
    return el("li", { class: "tile", data: { stage: stage.name }, title: stage.call },
      run ? link("overview", { run: stage.run }, stage.name) : el("span", {}, stage.name),
      el("span", { class: `dot ${stage.is_done ? "finished" : state}` }, state), stageFigure(stage),
      el("small", {}, stage.minutes ? duration(60 * stage.minutes) : ""));
  });
  return el("section", { class: "card", data: { pipeline: name } }, el("h2", {}, `Pipeline ${name}`),
    fault ? el("p", {}, el("span", { class: "badge bad" }, "damaged"), ` ${fault}`) : el("ol", { class: "stages" }, tiles));
}

export async function open(root, page) {
  const selection = new Set();
  let sort = page.params.sort ?? "started", data = null;
  const openCompare = () => page.go("compare", { runs: [...selection].join(",") });
  const compare = el("button", { disabled: true, title: "choose two runs or more", onclick: openCompare }, "compare");
  const body = el("div");
  put(root, el("div", { class: "bar-row" }, el("h1", {}, "Runs"), compare), body);

  // The head of a column that the list can be sorted by.
  const sortButton = (key, title) => el("button", {
    class: "head", "aria-pressed": String(sort === key), onclick: () => { sort = key; page.set({ sort }); draw(); },
  }, title);
  // The checkbox that puts a run into the comparison.
  const choice = (row) => el("input", {
    type: "checkbox", "aria-label": `choose ${row.name}`, checked: selection.has(row.name),
    onchange: (event) => {
      selection[event.target.checked ? "add" : "delete"](row.name);
      compare.disabled = selection.size < 2;
    },
  });

  // Ask again. Only news are drawn: drawing takes the focus away, and a click that has begun.
  async function load() {
    const reply = await ask("runs");
    if (JSON.stringify(reply) === JSON.stringify(data)) return updateAges(body);
    data = reply;
    return draw();
  }
  function draw() {
    const { folder, pipelines } = data, runs = [...data.runs];
    if (!runs.length && !pipelines.length) { put(body, empty(`There is no run in ${folder} yet.`, "reasoner train --model base")); return; }
    const value = SORTS[sort] ?? SORTS.started;
    runs.sort((a, b) => (value(a) > value(b) ? 1 : value(a) < value(b) ? -1 : 0));
    const heads = ["", sortButton("name", "run"), "state", sortButton("step", "steps done"),
      sortButton("pass@1", "pass@1"), "cons@k", "time left", "model", "algorithm", "correct", sortButton("started", "started")];
    const byName = new Map(runs.map((row) => [row.name, row]));
    put(body, pipelines.map((one) => pipelineCard(one, byName)), table(heads, runs.map((row) => runRow(row, choice(row))), "runs"),
    el("p", { class: "muted" }, "pass@1 and cons@k: on the held-out problems; of a run that has not ended, the latest validation. correct: share of correct completions in training, by step. ",
      "A run is live while its process holds its lock, and stopped if the process was killed or failed: ",
      el("code", {}, "reasoner train --resume NAME"), " continues it."));
  }
  await load();
  return { live: load };
}
