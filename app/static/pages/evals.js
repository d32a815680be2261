// Evaluations: every metric with its interval, curves over k, and the vote on each problem.
import { bars, chart } from "../chart.js";
import { ask, card, el, empty, interval, link, number, percent, put, select, visible } from "../core.js";

const PAGE = 50;

const faults = (list) => (list.length ? card("Evaluations that cannot be read", list.map((one) => el("p", { data: { fault: one.name } }, el("span", { class: "badge bad" }, "damaged"), ` ${visible(one.name)}: ${visible(one.fault)}`))) : null);

export async function open(root, page) {
  const all = await ask("evals");
  if (!all.rows.length) { put(root, el("h1", {}, "Evals"), faults(all.faults), empty(`There is no evaluation in ${all.folder} or under a run yet.`, "reasoner eval --model base --pass@1 --cons@16")); return {}; }
  // Those of the run that is picked; all of them without a run, where that is asked for, and for a link to another's.
  const { run } = page.params, own = all.rows.filter((row) => row.run === run);
  const isAll = !run || page.params.all === "1" || Boolean(page.params.eval && !own.some((row) => row.name === page.params.eval));
  const rows = isAll ? all.rows : own;
  const shown = el("div"), head = el("div", { class: "bar-row", data: { evals: isAll ? "all" : run } }, el("h1", {}, isAll ? "Evals" : `Evals of ${run}`),
    !run ? null : isAll ? link("evals", { run }, `those of ${run} (${number(own.length)})`) : link("evals", { run, all: 1 }, `all evaluations (${number(all.rows.length)})`));
  if (!rows.length) { put(root, head, faults(all.faults), empty(`There is no evaluation of run ${run} yet. Training measures the held-out problems when it ends; this measures them now:`, `reasoner eval --model ${run} --pass@1 --cons@16`)); return {}; }
  const name = page.params.eval ?? rows[0].name, now = rows.find((row) => row.name === name && (!page.params.set || row.set === page.params.set));
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))];
  const estimate = (one) => (one ? el("span", { data: { value: String(one.value) } }, percent(one.value), " ", el("small", {}, interval(one))) : "–");
  put(root, head, card(null, el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["evaluation", "model", "set", "problems", "samples", ...columns.map((metric) => `${metric}, 95 % CI`)].map((h) => el("th", {}, h)))),
    el("tbody", {}, rows.map((row) => el("tr", { data: { eval: row.name }, class: row === now ? "now" : "" }, [
      link("evals", { ...page.params, eval: row.name, set: row.set, show: "", offset: "" }, row.name), row.model, row.set, number(row.problems), Object.values(row.samples ?? {}).length ? Object.entries(row.samples).map(([way, n]) => `${way} ${n}`).join(", ") : number(row.samples),
      ...columns.map((name) => estimate(row.metrics[name]))].map((cell) => el("td", {}, cell)))))))), faults(all.faults), shown);
  const offset = Number(page.params.offset ?? 0), show = page.params.show || "all";
  const found = await ask("evaluation", { name, set: page.params.eval ? page.params.set ?? "" : "", show, offset, limit: PAGE });
  const go = (values) => page.go("evals", { ...page.params, eval: name, set: found.set, ...values });
  put(shown, el("h2", {}, `${name} · ${found.set}`),
    el("div", { class: "tiles" }, Object.entries(found.metrics).map(([metric, e]) => el("div", { class: "tile", data: { tile: metric, value: String(e.value) } }, el("span", {}, metric), el("b", {}, percent(e.value)), el("small", {}, `${interval(e)}, ${e.problems} problems`)))),
    chart({ title: "pass@k (unbiased) and cons@k (exact, ties split evenly) against k", xname: "k", lines: Object.entries(found.curves).map(([metric, points]) => ({ name: metric, points: points.map((p) => ({ x: p.k, y: p.value, low: p.low, high: p.high })) })), isShare: true }),
    card("The vote on each problem", el("div", { class: "bar-row" },
      select("show", Object.entries(found.shows).map(([key, n]) => [key, `${key} (${n})`]), show, (v) => go({ show: v, offset: "" })),
      el("b", { data: { count: "" } }, number(found.total)),
      offset > 0 ? el("button", { onclick: () => go({ offset: Math.max(0, offset - PAGE) || "" }) }, "← before") : null, offset + PAGE < found.total ? el("button", { onclick: () => go({ offset: offset + PAGE }) }, "after →") : null),
    el("p", { class: "muted" }, "Equal answers are one vote, however they are written (1/2 and 0.5). An answer that cannot be read abstains. Where several answers have the most votes, each counts as winning in equal parts."),
    el("div", { class: "votes" }, found.problems.map((p) => el("article", { class: "card", data: { vote: p.problem, winner: p.winner } },
      el("div", { class: "bar-row" }, el("b", {}, visible(p.problem)), el("span", { class: `badge ${{ right: "good", wrong: "bad", tie: "warn", nobody: "odd" }[p.winner]}` }, p.winner === "tie" ? "tied" : p.winner === "nobody" ? "no vote" : `${p.winner} wins`), el("span", { class: "muted" }, `${p.right} of ${p.n} right`), p.greedy ? el("span", { class: p.greedy.right ? "up" : "down" }, `greedy ${visible(p.greedy.answer ?? "none")}`) : null),
      el("div", { class: "text", dir: "ltr" }, p.question), el("small", {}, `gold: ${visible(p.gold)}`),
      bars([...p.classes.slice(0, 8).map((c) => ({ name: visible(c.spelt.join("  =  ")), value: c.votes, class: c.right ? "up" : "" })), ...(p.abstained ? [{ name: "no vote", value: p.abstained, class: "none" }] : [])]),
      el("details", {}, el("summary", {}, "responses"), p.texts.map((t) => el("div", { class: `text response ${t.right ? "up" : "down"}`, dir: "ltr" }, t.text))))))));
  return {};
}
