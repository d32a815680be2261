// Reflection: how often completions reflect, with which outcome, the association with correctness, and the best spans.
import { bars, chart, shareZoom } from "../chart.js";
import { card, differenceText, el, latestOnly, link, number, percent, put, select, tile, visible } from "../core.js";
import { chosenGallery } from "../gallery.js";
import { excerptText } from "../text.js";

const MEANINGS = {
  cue: "a phrase of reflection in context; nothing is claimed about its effect",
  "self-correction": "a cue with a wrong answer before it and a correct one after it",
  aha: "a self-correction in a correct completion of a problem that most other completions of the group, those without a self-correction, get wrong",
};
const OUTCOME_CLASSES = { correct: "up", harm: "down", switch: "down", missed: "down" };
const CORRECTION = "self-correction";

// The number of self-corrections, whether "aha" or not, in counts by label.
const corrections = (labels) => (labels[CORRECTION] ?? 0) + (labels.aha ?? 0);

// The sum of the values of an object.
const sum = (values) => Object.values(values).reduce((total, value) => total + value, 0);

// The lines of the chart of cues.
function cueLines({ timeline, kinds }) {
  const all = timeline.map((line) => ({ x: line.step, y: sum(line.kinds) }));
  const kindLine = (name) => ({ name, thin: true, points: timeline.map((line) => ({ x: line.step, y: line.kinds[name] })) });
  const startsAtZero = timeline[0]?.step === 0;
  return [{ name: "all cues", points: all }, ...kinds.map(kindLine).filter((line) => line.points.some((point) => point.y > 0)),
    ...(startsAtZero ? [{ name: "all cues at step 0", dashed: true, colour: "--muted", points: [all[0], { ...all[all.length - 1], y: all[0].y }] }] : [])];
}

// The lines of the chart of self-corrections.
function correctionLines({ timeline }) {
  const aha = timeline.map((line) => ({ x: line.step, y: line.labels.aha }));
  return [{ name: "all self-corrections", points: timeline.map((line) => ({ x: line.step, y: corrections(line.labels) })) },
    ...(aha.some((point) => point.y > 0) ? [{ name: "of these, aha", points: aha }] : [])];
}

// Title, totals and definitions.
function heading(run, data) {
  const { num_analyzed: done, num_steps: all, uplift: { difference, problems }, totals: { labels } } = data;
  const first = data.first_correction, [mean, interval] = difference ? differenceText(difference).split(/ (.*)/) : [];
  const tiles = [tile("cues", number(sum(labels))), tile("self-corrections", number(corrections(labels))), tile("aha", number(labels.aha ?? 0)),
    tile("accuracy with − without reflection", difference ? `${mean} points` : "–",
      difference ? `${interval} over ${problems} problems with both` : `${problems} problems with both`),
    tile("first successful self-correction", first ? link("rollouts", { run, rollout: first }, first) : "–", "step.group.sample")];
  return [
    el("div", { class: "bar-row" }, el("h1", {}, "Reflection"),
      el("span", { class: "muted", data: { analyzed: String(done) } }, done < all ? `${done} of ${all} steps analysed so far` : `${all} steps`)),
    el("div", { class: "tiles" }, tiles),
    el("p", { class: "muted" }, Object.entries(MEANINGS).map(([name, text]) => [el("b", {}, name), `: ${text}. `]),
      "The difference within groups is an association, not a cause: a completion that works the problem through also has more to check."),
  ];
}

// The totals by outcome and by kind as bars.
function totalCards({ totals, outcomes, kinds }) {
  const outcome = (name) => ({ name, value: totals.outcomes[name] ?? 0, title: outcomes[name], class: OUTCOME_CLASSES[name] });
  const kind = (name) => ({ name: name === "aha" ? "“aha”, “I see”" : name, value: totals.kinds[name] ?? 0 });
  return [card("Outcomes", bars(Object.keys(outcomes).map(outcome))), card("Kinds of cues", bars(kinds.map(kind)))];
}

// A span of the gallery with the text around it.
function galleryCard(run, item) {
  const answers = item.before ? `: ${visible(item.before)} → ${visible(item.after)}` : "";
  return el("article", { class: "card", data: { card: item.name, score: String(item.score) } },
    el("div", { class: "bar-row" }, el("span", { class: `badge ${item.label === "cue" ? "neutral" : "good"}` }, item.label),
      link("rollouts", { run, rollout: item.name }, item.name), el("span", { class: "muted" }, `${item.kind} · ${item.outcome}${answers}`)),
    el("small", {}, item.question),
    excerptText(item, `cue ${item.label}`),
    el("small", { class: "muted" }, `completion ${item.correct ? "correct" : "wrong"} · others of its group correct: ${percent(item.others_correct, 0)}`));
}

// The card that counts the completions with any words; `count()` counts them again.
function wordSearch(run, page) {
  const askWords = latestOnly();
  let text = page.params.q ?? "wait", shown = null;  // {text, figure}: the chart of the last reply
  const total = el("span", { class: "muted" }), box = el("div");
  const input = el("input", {
    value: text, "aria-label": "words", placeholder: "wait", data: { search: "" },
    onchange: (event) => { text = event.target.value; page.set({ q: text }); count(); },
  });
  async function count() {
    try {
      const reply = await askWords("words", { run, text });
      if (!reply) return;
      total.textContent = `${number(reply.total)} completions`;
      const lines = [{ name: "share", points: reply.points.map((point) => ({ x: point.step, y: point.share })) }];
      if (shown?.text === reply.text) return shown.figure.update({ lines });
      const openRollouts = (point) => page.go("rollouts", { run, step: String(point.x), text: reply.text });
      const figure = chart({ title: `completions with ${reply.text}`, lines, isShare: true, height: 120, onpick: openRollouts });
      shown = { text: reply.text, figure };
      put(box, figure);
    } catch (error) { total.textContent = error.message; }
  }
  return { card: card("Search for words", el("div", { class: "bar-row" }, input, total), box), count };
}

export async function open(root, page) {
  const { run } = page.params;
  const head = el("div"), totals = el("div", { class: "grid three" }), bar = el("div", { class: "bar-row" });
  const words = wordSearch(run, page), onpick = (point) => page.go("rollouts", { run, step: String(point.x), label: CORRECTION });
  const cues = chart({ title: "Cues per 1,000 tokens", lines: [], least: 0, onpick });
  const correctionChart = chart({ title: "Self-corrections per 1,000 tokens", lines: [], least: 0, onpick });
  const curves = el("div", { class: "grid two" }, cues, correctionChart);
  shareZoom(curves);

  function draw(data, label, choose) {
    put(head, heading(run, data));
    cues.update({ lines: cueLines(data) });
    correctionChart.update({ lines: correctionLines(data) });
    put(totals, totalCards(data), words.card);
    put(bar, el("h2", {}, "Spans, the strongest evidence first"), select("label", [["", "all"], ...data.labels], label, choose));
  }
  const spans = await chosenGallery(page, {
    path: "reflection", field: "label", cards: (reply) => reply.gallery.map((item) => galleryCard(run, item)),
    none: "There is no such span.", draw,
  });
  put(root, head, curves, totals, bar, spans.nodes);
  spans.start();
  await words.count();
  return { live: async () => { if (await spans.live()) await words.count(); } };
}
