// All problems: a map of pass rates by step, and how many groups had something to teach.
import { address, ask, card, el, empty, link, number, percent, put, select, visible } from "../core.js";

const CELL = 18, LEFT = 230, PAGE = 200;

export async function open(root, page) {
  const { run } = page.params;
  let by = page.params.by ?? "family", sort = page.params.sort ?? "problem", subject = page.params.subject ?? "", offset = Number(page.params.offset ?? 0), found, cursor = null, cells = new Map();
  const canvas = el("canvas", { tabindex: "0", role: "grid", "aria-label": "pass rates, problems by steps; the arrow keys move, Enter opens" });
  const readout = el("p", { role: "status", class: "readout", data: { readout: "" } }, "Point at a cell."), names = el("div", { class: "names" }), bar = el("div", { class: "bar-row" }), rates = el("div");
  const colour = (name) => getComputedStyle(document.getElementById("reasoner")).getPropertyValue(name).trim();
  const width = () => Math.max(4, Math.min(CELL, Math.floor((root.clientWidth - LEFT - 40) / Math.max(1, found.steps.length))));

  function draw() {
    if (!root.isConnected) return;
    const w = width(), ratio = devicePixelRatio || 1, c = canvas.getContext("2d");
    canvas.style.width = `${w * found.steps.length}px`; canvas.style.height = `${CELL * found.rows.length}px`;
    canvas.width = w * found.steps.length * ratio; canvas.height = CELL * found.rows.length * ratio;
    c.scale(ratio, ratio);
    c.fillStyle = colour("--hole"); c.fillRect(0, 0, w * found.steps.length, CELL * found.rows.length);
    const place = new Map(found.steps.map((step, i) => [step, i]));
    const good = colour("--good"), bad = colour("--bad-soft");
    for (const [row, step, correct, size] of found.cells) {
      const x = place.get(step) * w, y = row * CELL;
      c.fillStyle = bad; c.fillRect(x, y, w - (w > 5), CELL - 1);
      c.globalAlpha = correct / size; c.fillStyle = good; c.fillRect(x, y, w - (w > 5), CELL - 1); c.globalAlpha = 1;
    }
    if (cursor) { c.strokeStyle = colour("--accent"); c.lineWidth = 2; c.strokeRect(cursor[1] * w + 0.5, cursor[0] * CELL + 0.5, w, CELL - 1); }
    canvas.dataset.cells = String(found.cells.length);
  }
  const at = (row, column) => {
    const problem = found.rows[row], step = found.steps[column];
    if (!problem || step === undefined) return null;
    const cell = cells.get(`${row} ${step}`);
    return { problem, step, text: `${visible(problem.problem)}, step ${step}: ${cell ? `${cell[0]} of ${cell[1]} right (${percent(cell[0] / cell[1], 0)})` : "not sampled"}` };
  };
  function point(row, column) { cursor = [row, column]; const here = at(row, column); if (here) readout.textContent = here.text; draw(); return here; }
  const enter = (here) => (by === "problem" ? page.go("problem", { run, id: here.problem.problem, step: here.step }) : page.go("rollouts", { run, subject: here.problem.subject, level: here.problem.level, step: here.step }));
  const inside = (event) => [Math.floor(event.offsetY / CELL), Math.floor(event.offsetX / width())];
  canvas.addEventListener("pointermove", (event) => point(...inside(event)));
  canvas.addEventListener("click", (event) => { const here = at(...inside(event)); if (here) enter(here); });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (by) { event.preventDefault(); const [r, s] = cursor ?? [0, -by[1]]; point(Math.max(0, Math.min(found.rows.length - 1, r + by[0])), Math.max(0, Math.min(found.steps.length - 1, s + by[1]))); }
    else if (event.key === "Enter" && cursor) enter(at(...cursor));
  });

  async function load() {
    found = await ask("problems", { run, by, sort, subject, offset, limit: PAGE });
    cells = new Map(found.cells.map(([row, step, correct, size]) => [`${row} ${step}`, [correct, size]]));
    const more = (to) => { offset = to; page.set({ offset: to || "" }); load(); };
    put(bar, el("h1", {}, "Problems"), el("b", { data: { count: "" } }, number(found.total)),
      select("rows", [["family", "families and levels"], ["problem", "problems"]], by, (v) => { by = v; offset = 0; page.set({ by: v, offset: "" }); load(); }),
      select("order", found.sorts, sort, (v) => { sort = v; offset = 0; page.set({ sort: v, offset: "" }); load(); }),
      select("family", [["", "all"], ...found.subjects.map((s) => [s, s])], subject, (v) => { subject = v; offset = 0; page.set({ subject: v, offset: "" }); load(); }),
      offset > 0 ? el("button", { onclick: () => more(Math.max(0, offset - PAGE)) }, "← before") : null,
      offset + PAGE < found.total ? el("button", { onclick: () => more(offset + PAGE) }, "after →") : null,
      el("span", { class: "muted" }, found.total ? `rows ${offset + 1} to ${offset + found.rows.length}` : ""));
    if (!found.rows.length) return put(names, empty("No problem has been sampled yet."));
    put(names, found.rows.map((row) => el("a", { href: by === "problem" ? address("problem", { run, id: row.problem }) : address("rollouts", { run, subject: row.subject, level: row.level }), "data-link": "", title: row.question, data: { problem: row.problem, rate: String(row.rate) } }, el("span", {}, visible(row.problem)), el("small", {}, percent(row.rate, 0)))));
    put(rates, solveRates(found.solve_rates));
    draw();
  }
  put(root, bar, card("Pass rate by step (grey: not sampled)", readout, el("div", { class: "heat" }, names, el("div", { class: "scroll" }, canvas))), card("How many completions of a group are right, by tenths of the run", el("p", { class: "muted" }, "Groups that are all right or all wrong have nothing to teach: what is between them is the usable gradient."), rates));
  await load();
  addEventListener("themechange", draw);
  return { close: () => removeEventListener("themechange", draw), live: async () => {
    const fresh = await ask("problems", { run, by, sort, subject, offset, limit: 0 });
    if (fresh.steps.length !== found.steps.length) await load();
  } };
}

function solveRates(rows) {
  const parts = new Map();
  for (const row of rows) parts.set(row.part, [...(parts.get(row.part) ?? []), row]);
  return el("div", { class: "solve" }, [...parts].map(([part, own]) => {
    const all = own.reduce((sum, r) => sum + r.groups, 0), usable = own.filter((r) => r.correct > 0 && r.correct < r.size).reduce((sum, r) => sum + r.groups, 0);
    const most = Math.max(...own.map((r) => r.groups));
    return el("div", { class: "histogram", data: { part: String(part), usable: String(usable / all) } },
      el("div", { class: "stack" }, own.map((r) => el("i", { title: `${r.correct} of ${r.size}: ${r.groups} groups`, class: r.correct === 0 || r.correct === r.size ? "flat" : "", style: { height: `${(100 * r.groups) / most}%` } }))),
      el("small", {}, `steps ${Math.min(...own.map((r) => r.first))}–${Math.max(...own.map((r) => r.last))}`), el("b", {}, `${percent(usable / all, 0)} usable`));
  }));
}
