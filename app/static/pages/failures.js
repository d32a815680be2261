// Failures: why responses are wrong, stacked by step, with examples of each cause.
import { chart } from "../chart.js";
import { ask, card, el, link, number, percent, put, select, share, tableRow, verdictBadge, visible } from "../core.js";
import { gallery } from "../gallery.js";

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
    el("span", { class: "number" }, percent(all ? totals[name] / all : 0)), el("span", { class: "number" }, share(rollouts ? totals[name] / rollouts : 0)),
    link("rollouts", { run, failure: name }, "rollouts"), el("span", { class: "muted" }, meaning)], { data: { cause: name, count: String(totals[name]) } });
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ["cause", "failures", "of all failures", "of all rollouts", "", "meaning"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, Object.entries(causes).map(row))));
}

// An example: what was asked, what was answered, and the place in the text.
function example(run, item) {
  const [before, place, after] = item.excerpt;
  return el("article", { class: "card", data: { card: item.name, cause: item.cause } },
    el("div", { class: "bar-row" }, el("b", {}, item.cause), verdictBadge(item.verdict), link("rollouts", { run, rollout: item.name }, item.name)),
    el("small", {}, visible(item.question)),
    el("p", {}, "gold ", el("b", {}, visible(item.gold)), " · answer ", el("b", {}, visible(item.extracted ?? "none")),
      item.detail ? [" · ", el("span", { class: "bad", data: { detail: "" } }, visible(item.detail))] : null),
    el("div", { class: "text", dir: "ltr" }, item.cut[0] ? "… " : "", before, place ? el("mark", {}, place) : null, after, item.cut[1] ? " …" : ""));
}

export async function open(root, page) {
  const { run } = page.params;
  let cause = page.params.cause ?? "", data = await ask("failures", { run, cause });
  const head = el("div", { class: "bar-row" }), table = el("div"), bar = el("div", { class: "bar-row" });
  const figure = chart({
    title: "Failures by cause", unit: "share of the rollouts of a step", lines: causeLines(data), isShare: true, isStacked: true, height: 260,
    onpick: (point) => page.go("rollouts", { run, step: String(point.x), correct: "no" }),
  });
  const examples = gallery({
    path: "failures",
    query: () => ({ run, cause }),
    cards: (reply) => {
      data = reply;
      return reply.examples.map((item) => example(run, item));
    },
    none: "There is no failure of this cause.",
  });

  function draw() {
    const done = data.timeline.length, failed = Object.values(data.totals).reduce((sum, value) => sum + value, 0);
    put(head, el("h1", {}, "Failures"),
      el("span", { class: "muted", data: { analyzed: String(done) } }, `${number(failed)} of ${number(data.rollouts)} rollouts in `,
        done < data.num_steps ? `${done} of ${data.num_steps} steps analysed so far` : `${done} steps`,
        "; each has the first cause that applies, from the top of the table"));
    figure.update({ lines: causeLines(data) });
    put(table, causeTable(run, data, filter));
    put(bar, el("h2", {}, "Examples, the latest first"), select("cause", [["", "all"], ...Object.keys(data.causes)], cause, filter));
  }
  function filter(name) {
    cause = name;
    page.set({ cause });
    draw();
    return examples.load();
  }
  put(root, head, figure, card("Causes", table), bar, examples.nodes);
  draw();
  examples.draw(data);
  return { live: async () => {
    const causeBefore = cause, reply = await ask("failures", { run, cause });
    if (cause !== causeBefore) return;  // the examples of another cause are on their way
    if (reply.timeline.length === data.timeline.length && reply.num_steps === data.num_steps) return;
    data = reply;
    draw();
    if (!examples.hasMorePages()) examples.draw(data);
  } };
}
