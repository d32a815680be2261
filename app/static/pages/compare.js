// Runs beside each other: the same curves, what was set differently, and the held-out problems one by one.
import { chart, COLOURS } from "../chart.js";
import { ask, card, el, link, percent, put, table, visible } from "../core.js";

export async function open(root, page) {
  const { runs } = await ask("runs");
  const names = (page.params.runs ?? "").split(",").filter(Boolean);
  const chosen = new Set(names);
  const boxes = el("div", { class: "bar-row" }, el("h1", {}, "Compare"), runs.filter((r) => !r.fault).map((row) => el("label", {}, el("input", { type: "checkbox", checked: chosen.has(row.name), "aria-label": row.name, onchange: (event) => {
    chosen[event.target.checked ? "add" : "delete"](row.name);
    page.go("compare", { runs: [...chosen].join(",") }, { replace: true });
  } }), ` ${row.name}`)));
  if (chosen.size < 2) { put(root, boxes, el("p", { class: "muted" }, "Choose two runs or more.")); return {}; }
  const found = await ask("compare", { runs: names });
  const colour = (name) => COLOURS[found.runs.indexOf(name) % COLOURS.length];
  const metric = (key) => found.runs.map((name) => ({ name, colour: colour(name), points: found.curves[name].metrics.filter((m) => m[key] !== undefined).map((m) => ({ x: m.step + 1, y: m[key] })) }));
  const look = (read, label) => found.runs.map((name) => ({ name: `${name}${label(found.curves[name])}`, colour: colour(name), points: found.curves[name].looks.map((l) => [l, read(l)]).filter(([, e]) => e).map(([l, e]) => ({ x: l.step, y: e.value, low: e.low, high: e.high })) }));
  const cons = (l) => Object.entries(l.metrics).find(([name]) => name.startsWith("cons@"));
  const kOf = (curves) => (curves.looks.length ? ` ${cons(curves.looks[0])?.[0] ?? ""}` : "");
  const show = (value) => (value === null || value === undefined ? el("span", { class: "muted" }, "–") : visible(String(value)));
  const differences = (rows, what) => rows.length ? table([what, ...found.runs], rows.map((row) => [el("code", {}, row.key), ...row.values.map(show)])) : el("p", { class: "muted" }, "none");
  put(root, boxes, el("div", { class: "grid two" },
    chart({ title: "pass@1 on the validation problems", lines: look((l) => l.metrics["pass@1"], () => ""), isShare: true }), chart({ title: "cons@k on the validation problems", lines: look((l) => cons(l)?.[1], kOf), isShare: true }),
    chart({ title: "correct in training", lines: metric("correct"), isShare: true }), chart({ title: "response tokens", lines: metric("completions/mean_length"), least: 0 }),
    chart({ title: "check their own working", lines: metric("reflection/self_check_rate"), isShare: true }), chart({ title: "KL to the reference", lines: metric("kl"), least: 0 })),
  card("Settings that differ", differences(found.settings, "setting")), card("Versions that differ", differences(found.versions, "what")),
  found.paired.map((pair) => card(`Held-out problems: ${pair.b} less ${pair.a}`, pair.fault ? el("p", { class: "muted" }, pair.fault) : [
    table(["metric", pair.b, pair.a, "difference, points (95 % CI)", "p", "won / tied / lost"], pair.differences.map((d) => el("tr", { data: { difference: d.metric, mean: String(d.difference.mean) } }, [d.metric, percent(d.a), percent(d.b), `${(100 * d.difference.mean).toFixed(1)} [${(100 * d.difference.low).toFixed(1)}, ${(100 * d.difference.high).toFixed(1)}]`, d.difference.p < 0.001 ? "< 0.001" : d.difference.p.toFixed(3), `${d.difference.wins} / ${d.difference.ties} / ${d.difference.losses}`].map((cell) => el("td", {}, cell))))),
    el("details", {}, el("summary", {}, `${pair.flipped.length} problems are mostly right on one side alone`), table(["problem", pair.b, pair.a, "question"], pair.flipped.map((f) => [visible(f.problem), percent(f.a, 0), percent(f.b, 0), f.question])))])));
  return {};
}
