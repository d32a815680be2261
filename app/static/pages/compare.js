// Runs side by side: their curves, the settings that differ, and the held-out problems one by one.
import { chart, COLOURS, shareZoom } from "../chart.js";
import { ask, card, checkbox, consensus, count, differenceText, el, empty, isMissing, link, percent, put, table, tableRow, visible } from "../core.js";
import { seriesOf } from "../series.js";

// The charts of the runs' curves.
function curveCharts({ runs, curves }) {
  const colour = (name) => COLOURS[runs.indexOf(name) % COLOURS.length];
  const series = runs.map((name) => [name, { colour: colour(name) }, seriesOf(curves[name], { axis: "step", smoothing: 0 })]);
  const metric = (key) => series.map(([name, options, own]) => own.metric(name, key, options));
  const validation = (read, suffix = () => "") =>
    series.map(([name, options, own]) => own.validation(`${name}${suffix(curves[name].validations)}`, read, options));
  const consName = (validations) => (validations.length ? ` ${consensus(validations[0])?.[0] ?? ""}` : "");
  return [
    chart({ title: "pass@1 on the validation problems", lines: validation((one) => one.metrics["pass@1"]), isShare: true }),
    chart({ title: "cons@k on the validation problems", lines: validation((one) => consensus(one)?.[1], consName), isShare: true }),
    chart({ title: "correct in training", lines: metric("correct"), isShare: true }),
    chart({ title: "response length", unit: "tokens", lines: metric("completions/mean_length"), least: 0 }),
    chart({ title: "self-check rate", lines: metric("reflection/self_check_rate"), isShare: true }),
    chart({ title: "KL to the reference", unit: "nats per token", lines: metric("kl"), least: 0 }),
  ];
}

// The values that differ between the runs, one row each.
function differenceTable(rows, what, runs) {
  if (!rows.length) return el("p", { class: "muted" }, "none");
  const cell = (value) => (isMissing(value) ? el("span", { class: "muted" }, "–") : visible(String(value)));
  return table([what, ...runs], rows.map((row) => [el("code", {}, row.key), ...row.values.map(cell)]));
}

// The held-out problems of a run and the first run: differences by metric, and the problems that flipped.
function heldoutCard({ a, b, fault, differences, flips, num_flips: numFlips }) {
  const title = `Held-out problems: ${b} − ${a}`;
  if (fault) return card(title, el("p", { class: "muted" }, fault));
  const row = ({ metric, a: valueA, b: valueB, difference, p }) => tableRow([
    metric, percent(valueB), percent(valueA), differenceText(difference), p, `${difference.wins} / ${difference.ties} / ${difference.losses}`,
  ], { data: { difference: metric, mean: String(difference.mean) } });
  const flipRow = (flip) => [visible(flip.problem), percent(flip.b, 0), percent(flip.a, 0), el("div", { class: "text" }, flip.question)];
  return card(title,
    table(["metric", b, a, "difference, points (95 % CI)", "p (Holm)", "won / tied / lost"], differences.map(row)),
    el("details", {}, el("summary", {}, `${count(numFlips, "problem")} mostly correct in one of the two only`),
      table(["problem", b, a, "question"], flips.map(flipRow))));
}

export async function open(root, page) {
  shareZoom(root);
  const { runs, folder } = await ask("runs"), names = (page.params.runs ?? page.params.run ?? "").split(",").filter(Boolean);
  const selection = new Set(names), known = runs.filter((row) => !row.fault);
  const choose = (name, checked) => {
    selection[checked ? "add" : "delete"](name);
    page.go("compare", { ...page.params, runs: [...selection].join(",") }, { replace: true });
  };
  const choices = known.map(({ name }) => checkbox(name, selection.has(name), (checked) => choose(name, checked)));
  const bar = el("div", { class: "bar-row" }, el("h1", {}, "Compare"), choices);
  if (selection.size < 2) {
    put(root, bar, known.length < 2
      ? empty(`A comparison needs two runs; ${folder} has ${count(known.length, "run")}. To train one with another seed:`, "reasoner train --model base --seed 1")
      : empty(["Choose two to six runs above, or in the list of ", link("runs", {}, "all runs"), ". They are shown side by side: their curves, ",
        "the settings and package versions that differ, and the differences on the held-out problems with 95 % intervals."]));
    return {};
  }
  const data = await ask("compare", { runs: names });
  put(root, bar, el("div", { class: "grid two" }, curveCharts(data).filter((figure) => figure.querySelector(".key"))),  // the others stay empty
    card("Settings that differ", differenceTable(data.settings, "setting", data.runs)),
    card("Package versions that differ", differenceTable(data.versions, "package", data.runs)),
    data.heldout.map(heldoutCard));
  return {};
}
