// Evaluations: every metric with its interval, curves over k, and the vote on each problem.
import { bars, chart } from "../chart.js";
import { ask, card, count, el, empty, interval, isOffered, link, number, percent, put, select, signClass, table, tableRow, tile, visible } from "../core.js";
import { gallery, PAGE_SIZE } from "../gallery.js";

// By winner of a vote: the class and the text of its badge.
const WINNERS = { correct: ["good", "correct wins"], wrong: ["bad", "wrong wins"], tie: ["warn", "tied"], nobody: ["neutral", "no vote"] };

// The evaluations that cannot be read, with the reasons.
function faultCard(faults) {
  if (!faults.length) return null;
  return card("Evaluations that cannot be read", faults.map(({ name, fault }) =>
    el("p", {}, el("span", { class: "badge bad" }, "damaged"), ` ${visible(name)}: ${visible(fault)}`)));
}

// A metric with its interval.
const estimateCell = (estimate) => (estimate
  ? el("span", { data: { value: String(estimate.value) } }, percent(estimate.value), " ", el("small", {}, interval(estimate))) : "–");

// The number of samples, by way of sampling if there are several.
const samplesText = (samples) => (Object.values(samples ?? {}).length
  ? Object.entries(samples).map(([way, n]) => `${way} ${n}`).join(", ") : number(samples));

// The table of evaluations; `selection` is the row that is shown below.
function evaluationTable(rows, selection, page) {
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))];
  const heads = ["evaluation", "model", "set", "problems", "samples", ...metrics.map((metric) => `${metric}, 95 % CI`)];
  return card(null, table(heads, rows.map((row) => tableRow([
    link("evals", { ...page.params, eval: row.name, set: row.set, show: "" }, row.name), row.model, row.set,
    number(row.problems), samplesText(row.samples), ...metrics.map((metric) => estimateCell(row.metrics[metric])),
  ], { data: { eval: row.name }, class: row === selection ? "current" : "" }))));
}

// The classes of answers of a problem with their votes.
function voteCard(problem, run) {
  const { greedy, abstentions } = problem, [className, text] = WINNERS[problem.winner];
  const classes = problem.classes.slice(0, 8)
    .map((one) => ({ name: visible(one.spellings.join("  =  ")), value: one.votes, class: one.is_correct ? "up" : "" }));
  const sign = (isCorrect) => signClass(isCorrect ? 1 : -1);
  return el("article", { class: "card", data: { vote: problem.problem } },
    el("div", { class: "bar-row" }, el("b", {}, visible(problem.problem)), el("span", { class: `badge ${className}` }, text),
      el("span", { class: "muted" }, `${problem.correct} of ${problem.n} correct`),
      greedy ? el("span", { class: sign(greedy.is_correct) }, `greedy ${visible(greedy.answer ?? "none")}`) : null,
      isOffered("chat") ? link("chat", { run, question: problem.question, gold: problem.gold, verifier: problem.verifier }, "ask a model") : null),
    el("div", { class: "text", dir: "ltr" }, problem.question), el("small", {}, `gold: ${visible(problem.gold)}`),
    bars([...classes, ...(abstentions ? [{ name: "no answer", value: abstentions, class: "none" }] : [])]),
    el("details", {}, el("summary", {}, "responses"), problem.texts.map((response) =>
      el("div", { class: `text response ${sign(response.is_correct)}`, dir: "ltr" }, response.text))));
}

// Metrics, curves and votes of a data set of an evaluation. `votes`: the gallery of the votes.
function evaluationDetail(data, { show, filter, votes }) {
  const estimateTile = ([metric, estimate]) => tile(metric, percent(estimate.value), `${interval(estimate)}, ${count(data.selections.all, "problem")}`);
  const curve = ([name, points]) => ({ name, points: points.map(({ k, value, low, high }) => ({ x: k, y: value, low, high })) });
  const options = Object.entries(data.selections).map(([key, n]) => [key, `${key} (${n})`]);
  return [
    el("h2", {}, `${data.name} · ${data.set}`), el("div", { class: "tiles" }, Object.entries(data.metrics).map(estimateTile)),
    chart({ title: "pass@k (unbiased) and cons@k (exact, ties split evenly) by k", xname: "k", lines: Object.entries(data.curves).map(curve), isShare: true }),
    card("Votes by problem",
      select("show", options, show, filter),
      el("p", { class: "muted" }, data.curves["cons@k"] ? "Equal answers count as one answer, however they are written (1/2 and 0.5). "
        : "Wrong answers are compared as texts, since the evaluation has no cons@k. ", "A response without an answer has no vote. ",
        "If several answers have the most votes, the win is split evenly."),
      votes.nodes),
  ];
}

export async function open(root, page) {
  const evaluations = await ask("evals"), { run, eval: evalName, set: evalSet } = page.params, faults = faultCard(evaluations.faults);
  if (!evaluations.rows.length) {
    const hint = empty(`There is no evaluation in ${evaluations.folder} or under a run yet.`, "reasoner eval --model base --pass@1 --cons@16");
    put(root, el("h1", {}, "Evals"), faults, hint);
    return {};
  }
  // The evaluations of the selected run; all of them without a run, if the address says so, and for one of another run.
  const ownRows = evaluations.rows.filter((row) => row.run === run);
  const isAll = !run || page.params.all === "1" || Boolean(evalName && !ownRows.some((row) => row.name === evalName));
  const rows = isAll ? evaluations.rows : ownRows;
  const other = isAll ? link("evals", { run }, `those of ${run} (${number(ownRows.length)})`)
    : link("evals", { run, all: 1 }, `all evaluations (${number(evaluations.rows.length)})`);
  const head = el("div", { class: "bar-row", data: { evals: isAll ? "all" : run } }, el("h1", {}, isAll ? "Evals" : `Evals of ${run}`), run ? other : null);
  if (!rows.length) {
    put(root, head, faults, empty(`There is no evaluation of run ${run} yet. Training evaluates the held-out problems when it ends. To evaluate them now:`,
      `reasoner eval --model ${run} --pass@1 --cons@16`));
    return {};
  }
  const name = evalName ?? rows[0].name, selection = rows.find((row) => row.name === name && (!evalSet || row.set === evalSet));
  let show = page.params.show || "all";
  const query = () => ({ name, set: evalName ? evalSet ?? "" : "", show, limit: PAGE_SIZE }), detail = el("div");
  const votes = gallery({
    path: "evaluation", query, none: "There is no such problem.",
    cards: (reply) => reply.problems.map((problem) => voteCard(problem, run ?? selection?.run)),
  });
  const filter = (value) => { show = value; page.set({ show }); return votes.load(); };
  put(root, head, evaluationTable(rows, selection, page), faults, detail);
  const data = await ask("evaluation", query());
  put(detail, evaluationDetail(data, { show, filter, votes }));
  votes.draw(data);
  return {};
}
