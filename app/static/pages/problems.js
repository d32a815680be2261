// All problems: a map of pass rates by step, pass rates of new and of known problems, and the share of groups that gave a gradient.
import { chart } from "../chart.js";
import { address, ask, card, count, el, empty, fault, latestOnly, number, percent, put, select, sortHead, visible } from "../core.js";
import { themeColour } from "../plot.js";

const MOST_PIXELS = 16384;  // of a side of the map: browsers leave a larger canvas blank
const CELL = 18, NAMES_WIDTH = 230, PAGE_SIZE = 200;  // pixels, pixels, rows
const ORDERS = {
  "first solved": "first solved", "-rate": "highest pass rate", rate: "lowest pass rate", "-groups": "most groups", groups: "fewest groups",
  problem: "name", "-problem": "name, from the last", "first sampled": "first sampled", flips: "most flips",
};
const HEADS = { name: "problem", groups: "-groups", rate: "-rate" };  // of the names, with the order that a click on one selects first
const ARROWS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

// Paint the cells of the map; `cursor`: [row, column] with a frame, or null.
function paintMap(canvas, { rows, steps, cells }, width, cursor) {
  const ratio = devicePixelRatio || 1, context = canvas.getContext("2d");
  const size = [width * steps.length, CELL * rows.length];
  const scales = size.map((side) => Math.min(ratio, MOST_PIXELS / Math.max(1, side)));  // of a long run: coarser
  canvas.style.width = `${size[0]}px`; canvas.style.height = `${size[1]}px`;
  canvas.width = size[0] * scales[0]; canvas.height = size[1] * scales[1];
  context.scale(...scales);
  context.fillStyle = themeColour("--hole"); context.fillRect(0, 0, ...size);
  const columns = new Map(steps.map((step, i) => [step, i])), good = themeColour("--good"), bad = themeColour("--bad-soft");
  for (const [row, step, correct, number] of cells) {
    const box = [columns.get(step) * width, row * CELL, width - (width > 5), CELL - 1];
    context.fillStyle = bad; context.fillRect(...box);
    context.globalAlpha = correct / number; context.fillStyle = good; context.fillRect(...box); context.globalAlpha = 1;
  }
  if (cursor) {
    context.strokeStyle = themeColour("--accent"); context.lineWidth = 2;
    context.strokeRect(cursor[1] * width + 0.5, cursor[0] * CELL + 0.5, width, CELL - 1);
  }
  canvas.dataset.cells = String(cells.length);
}

// The beginning that all names have, up to a slash: the names are shown without it.
function commonFolder(names) {
  let folder = names.length > 1 ? names[0].slice(0, names[0].lastIndexOf("/") + 1) : "";
  while (folder && !names.every((name) => name.startsWith(folder))) folder = folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
  return folder;
}

// The name of a row, with its pass rate; it opens the problem, or the rollouts of the family.
function rowName(run, by, row, folder) {
  const href = by === "problem" ? address("problem", { run, id: row.problem }) : address("rollouts", { run, subject: row.subject, level: row.level });
  return el("a", { href, "data-link": "", title: row.question, data: { problem: row.problem } },
    el("span", {}, visible(row.problem.slice(folder.length))), el("small", {}, number(row.num_groups)), el("small", {}, percent(row.rate, 0)));
}

// How often the problems were sampled, and their mean pass rates by tenths of the run: at the first step that sampled a
// problem, where nothing of it can be remembered, and later.
function exposures({ sampled, exposures: rows, subject }) {
  const { problems, once } = sampled;
  const lastOf = (part) => Math.max(...rows.filter((row) => row.part === part).map((row) => row.last));
  const line = (name, isFirst) => ({
    name, points: rows.filter((row) => row.is_first === isFirst).map((row) => ({ x: lastOf(row.part), y: row.rate, low: row.low, high: row.high })),
  });
  const figure = chart({ title: `Mean pass rate${subject ? ` of ${subject}` : ""}`, lines: [line("sampled for the first time", true), line("sampled again", false)], isShare: true });
  return [el("p", { data: { once: String(once) } }, `${number(once)} of ${count(problems, "problem")} `,
    `${once === 1 ? "was" : "were"} sampled once. Where the rate of the first time rises, the policy has learned more than the answers of `,
    "problems that it has seen."), figure];
}

// Histograms of the groups by number of correct completions, for each tenth of the run.
function solveRates(rows) {
  const parts = new Map();
  for (const row of rows) parts.set(row.part, [...(parts.get(row.part) ?? []), row]);
  const sum = (own) => own.reduce((total, row) => total + row.groups, 0), isMixed = (row) => row.correct > 0 && row.correct < row.size;
  const histogram = ([part, own]) => {
    const mixed = sum(own.filter(isMixed)) / sum(own), most = Math.max(...own.map((row) => row.groups));
    const first = Math.min(...own.map((row) => row.first)), last = Math.max(...own.map((row) => row.last));
    const bar = (row) => el("i", {
      title: `${row.correct} of ${row.size} correct: ${row.groups} groups`, class: isMixed(row) ? "" : "uniform",
      style: { height: `${(100 * row.groups) / most}%` },
    });
    return el("div", { class: "histogram", data: { part: String(part), usable: String(mixed) } }, el("div", { class: "stack" }, own.map(bar)),
      el("small", {}, first === last ? `step ${first}` : `steps ${first}–${last}`),
      el("b", {}, `${percent(mixed, 0)} mixed`));
  };
  return el("div", { class: "solve-rates" }, [...parts].map(histogram));
}

export async function open(root, page) {
  const { run } = page.params;
  const view = {
    by: page.params.by ?? "family", sort: page.params.sort ?? "problem", subject: page.params.subject ?? "", offset: Number(page.params.offset ?? 0),
  };
  const askProblems = latestOnly();
  let data, cells = new Map(), cursor = null;
  const canvas = el("canvas", { tabindex: "0", role: "grid", "aria-label": "pass rates, problems by steps; the arrow keys move, Enter opens" });
  const readout = el("p", { role: "status", class: "readout", data: { readout: "" } }, "Point at a cell.");
  const names = el("div", { class: "names" }), bar = el("div", { class: "bar-row" }), rates = el("div");
  const heads = el("div", { class: "name-heads" }), seen = el("div"), notice = el("div", { class: "bar-row" });
  const cellWidth = () => Math.max(4, Math.min(CELL, Math.floor((root.clientWidth - NAMES_WIDTH - 40) / Math.max(1, data.steps.length))));
  const draw = () => { if (root.isConnected) paintMap(canvas, data, cellWidth(), cursor); };

  // The row, the step and the description of a cell; null outside the map.
  function cellAt([rowNumber, column]) {
    const row = data.rows[rowNumber], step = data.steps[column];
    if (!row || step === undefined) return null;
    const cell = cells.get(`${rowNumber} ${step}`);
    const result = cell ? `${cell[0]} of ${cell[1]} correct (${percent(cell[0] / cell[1], 0)})` : "not sampled";
    return { row, step, text: `${visible(row.problem)}, step ${step}: ${result}` };
  }
  // Frame a cell and describe it.
  function pointAt(place) {
    cursor = place;
    readout.textContent = cellAt(place)?.text ?? readout.textContent;
    draw();
  }
  // Open the problem, or the rollouts of the family, at the cell's step.
  function openCell(place) {
    const cell = cellAt(place);
    if (!cell) return;
    if (view.by === "problem") page.go("problem", { run, id: cell.row.problem, step: cell.step });
    else page.go("rollouts", { run, subject: cell.row.subject, level: cell.row.level, step: cell.step });
  }
  // Move the cursor by keys.
  function onKey(event) {
    const by = ARROWS[event.key];
    if (by) {
      event.preventDefault();
      const [row, column] = cursor ?? [0, -by[1]], within = (value, length) => Math.max(0, Math.min(length - 1, value));
      pointAt([within(row + by[0], data.rows.length), within(column + by[1], data.steps.length)]);
    } else if (event.key === "Enter" && cursor) openCell(cursor);
  }
  const place = (event) => [Math.floor(event.offsetY / CELL), Math.floor(event.offsetX / cellWidth())];
  canvas.addEventListener("pointermove", (event) => pointAt(place(event)));
  canvas.addEventListener("click", (event) => openCell(place(event)));
  canvas.addEventListener("keydown", onKey);

  // Change the view and the address, and load the rows again.
  async function change(values) {
    Object.assign(view, values);
    page.set({ ...values, offset: view.offset || "" });
    try {
      await load();
    } catch (error) {
      put(notice, fault(error), el("button", { onclick: () => change({}) }, "try again"));
    }
  }
  function drawBar() {
    const previous = Math.max(0, view.offset - PAGE_SIZE), next = view.offset + PAGE_SIZE;
    put(bar, el("h1", {}, "Problems"), el("b", { data: { count: "" } }, number(data.total)),
      select("rows", [["family", "families and levels"], ["problem", "problems"]], view.by, (by) => change({ by, offset: 0 })),
      select("order", Object.entries(ORDERS), view.sort, (sort) => change({ sort, offset: 0 })),
      select("family", [["", "all"], ...data.subjects.map((name) => [name, name])], view.subject, (subject) => change({ subject, offset: 0 })),
      view.offset > 0 ? el("button", { onclick: () => change({ offset: previous }) }, "← previous") : null,
      next < data.total ? el("button", { onclick: () => change({ offset: next }) }, "next →") : null,
      el("span", { class: "muted" }, data.total ? `rows ${view.offset + 1} to ${view.offset + data.rows.length}` : ""));
  }
  async function load() {
    const reply = await askProblems("problems", { run, ...view, limit: PAGE_SIZE });
    if (!reply) return;
    data = reply;
    put(notice);
    cells = new Map(data.cells.map(([row, step, correct, size]) => [`${row} ${step}`, [correct, size]]));
    drawBar();
    put(heads, Object.entries(HEADS).map(([name, first]) => sortHead(name, first, view.sort, (sort) => change({ sort, offset: 0 }))));
    if (!data.rows.length) { put(names, empty("No problem was sampled.")); return; }
    const folder = view.by === "problem" ? commonFolder(data.rows.map((row) => row.problem)) : "";
    put(names, data.rows.map((row) => rowName(run, view.by, row, folder)));
    put(seen, exposures({ ...data, subject: view.subject }));
    put(rates, solveRates(data.solve_rates));
    draw();
  }
  put(root, bar, notice,
    card("Pass rate by step (grey: not sampled)", readout, heads, el("div", { class: "heat" }, names, el("div", { class: "scroll" }, canvas))),
    el("div", { class: "grid two" }, card("New problems and known ones, by tenths of the run", seen),
      card("Groups by number of correct completions, by tenths of the run",
        el("p", { class: "muted" }, "Groups that are all correct or all wrong (grey) have zero variance in correctness; the mixed ones give a gradient."), rates)));
  await load();
  addEventListener("themechange", draw);
  return {
    close: () => removeEventListener("themechange", draw),
    live: async () => {
      const next = await ask("problems", { run, ...view, limit: 0 });
      if (next.steps.length !== data.steps.length) await load();
    },
  };
}
