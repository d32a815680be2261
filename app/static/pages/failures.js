// Failures: why responses are wrong, stacked by step, with examples of each cause.
import { chart } from "../chart.js";
import { card, el, link, number, put, select, share, table, tableRow, verdictBadge, visible } from "../core.js";
import { chosenGallery } from "../gallery.js";
import { excerptText } from "../text.js";

// A line for each cause that occurs: its share of the rollouts of each step.
function causeLines({ causes, totals, timeline }) {
  const names = Object.keys(causes).filter((name) => totals[name]);
  return names.map((name) => ({ name, points: timeline.map((line) => ({ x: line.step, y: line.causes[name] / line.rollouts })) }));
}

// How often each cause occurs, and what it means; a click on a cause shows its examples.
function causeTable(run, { causes, totals, rollouts }, filter) {
  const all = Object.values(totals).reduce((sum, value) => sum + value, 0);
  const row = ([name, meaning]) => tableRow([
    el("button", { class: "head", onclick: () => filter(name) }, name), el("span", { class: "number" }, number(totals[name])),
    el("span", { class: "number" }, share(all ? totals[name] / all : 0)), el("span", { class: "number" }, share(rollouts ? totals[name] / rollouts : 0)),
    link("rollouts", { run, failure: name }, "rollouts"), el("span", { class: "muted" }, meaning)], { data: { cause: name, count: String(totals[name]) } });
  return table(["cause", "failures", "of all failures", "of all rollouts", "", "meaning"], Object.entries(causes).map(row));
}

// An example: what was asked, what was answered, and the place in the text.
function example(run, item) {
  return el("article", { class: "card", data: { card: item.name, cause: item.cause } },
    el("div", { class: "bar-row" }, el("b", {}, item.cause), verdictBadge(item.verdict), link("rollouts", { run, rollout: item.name }, item.name)),
    el("small", {}, visible(item.question)),
    el("p", {}, "gold ", el("b", {}, visible(item.gold)), " · answer ", el("b", {}, visible(item.extracted ?? "none")),
      item.detail ? [" · ", el("span", { class: "bad", data: { detail: "" } }, visible(item.detail))] : null),
    excerptText(item));
}

export async function open(root, page) {
  const { run } = page.params;
  const head = el("div", { class: "bar-row" }), causes = el("div"), bar = el("div", { class: "bar-row" });
  const figure = chart({
    title: "Failures by cause", unit: "share of the rollouts of a step", lines: [], isShare: true, isStacked: true, height: 260,
    onpick: (point) => page.go("rollouts", { run, step: String(point.x), correct: "no" }),
  });

  function draw(data, cause, choose) {
    const done = data.num_analyzed, failed = Object.values(data.totals).reduce((sum, value) => sum + value, 0);
    put(head, el("h1", {}, "Failures"),
      el("span", { class: "muted", data: { analyzed: String(done) } }, `${number(failed)} of ${number(data.rollouts)} rollouts in `,
        done < data.num_steps ? `${done} of ${data.num_steps} steps analysed so far` : `${done} steps`,
        "; each has the first cause that applies, from the top of the table"));
    figure.update({ lines: causeLines(data) });
    put(causes, causeTable(run, data, choose));
    put(bar, el("h2", {}, "Examples, the latest first"), select("cause", [["", "all"], ...Object.keys(data.causes)], cause, choose));
  }
  const examples = await chosenGallery(page, {
    path: "failures", field: "cause", cards: (reply) => reply.examples.map((item) => example(run, item)),
    none: "There is no such failure.", draw,
  });
  put(root, head, figure, card("Causes", causes), bar, examples.nodes);
  examples.start();
  return { live: examples.live };
}
