// The curves of one run, as in the figures of DeepSeek-R1-Zero, and its alarms.
import { chart, shareZoom } from "../chart.js";
import { ask, card, checkbox, consensus, count, duration, el, empty, interval, isMissing, link, number, percent, put, select, table, tile, visible } from "../core.js";
import { seriesOf } from "../series.js";

const CHECKS = "reflection/self_check_rate", CAUGHT = "reflection/errors_caught";

// The four large charts: their lines and options by title.
function largeCharts(data, view) {
  const { metric, rollouts, validation, baseline, normal } = seriesOf(data, view);
  const consName = (data.validations.length && consensus(data.validations[0])?.[0]) || "cons@k";
  return {
    Accuracy: { isShare: true, lines: [
      validation("pass@1", (one) => one.metrics["pass@1"]), validation(consName, (one) => consensus(one)?.[1]),
      validation("greedy", (one) => one.greedy), metric("training, correct", "correct", { thin: data.validations.length > 0 }),
      normal("correct", "normal in training")] },
    "Response length": { least: 0, unit: "tokens", lines: [
      metric("all", "completions/mean_length"), rollouts("correct", "tokens_correct", { colour: "--good" }),
      rollouts("wrong", "tokens_wrong", { colour: "--bad" }), rollouts("95th percentile", "tokens_p95", { dashed: true, thin: true }),
      normal("completions/mean_length")] },
    Reward: { least: 0, lines: [
      metric("reward", "reward/mean"), metric("reward model", "reward/model"), metric("correct", "correct"),
      metric("well-formed", "well_formed"), metric("tool calls", "tools/calls", { thin: true }), normal("reward/mean")] },
    Reflection: { isShare: true, lines: [
      metric("self-check rate", CHECKS), metric("wrong claims caught", CAUGHT), baseline("self-check rate at step 0", CHECKS)] },
  };
}

// Whether the run has learned: pass@1 before training and after it on the held-out problems, until then on those of the validations.
function learningTile({ heldout, validations }) {
  const isOver = Boolean(heldout.after), latest = heldout.after ?? validations[validations.length - 1], now = latest?.metrics["pass@1"];
  if (!now) return tile("pass@1", "–", "no validation");
  const start = heldout.before ?? validations[0], before = (isOver || start.step === 0) && start.metrics["pass@1"];
  const about = `${interval(now)} ${isOver ? `on ${latest.problems} held-out` : `at step ${latest.step}, ${latest.problems} validation`} problems`;
  if (!before || latest.step === 0) return tile("pass@1", percent(now.value), `${latest.step === 0 ? "before training: " : ""}${about}`);
  const isHigher = now.low > before.high, isLower = now.high < before.low;  // the 95 % intervals do not overlap
  const words = isHigher ? "better than before training" : isLower ? "worse than before training" : "no clear change";
  return tile("pass@1", `${(100 * before.value).toFixed(1)} → ${percent(now.value)}`, `${words}: ${about}`, isHigher ? "up" : isLower ? "down" : "");
}

// Whether the run is healthy: the alarms that are active, or those that there were.
function healthTile({ metrics, alarms }) {
  const names = alarms.filter((alarm) => alarm.is_active).map((alarm) => visible(alarm.name));
  if (names.length) return tile("health", count(names.length, "active alarm"), names.join(", "), "down");
  if (!metrics.length) return tile("health", "–", "no step yet");
  return tile("health", alarms.length ? "no active alarm" : "no alarms", alarms.length ? `${number(alarms.length)} resolved, below` : "every health check has passed", "up");
}

// Whether the run is as those of its reference: the bands behind the curves.
function normalTile({ reference, metrics }) {
  if (!reference || metrics.length < 5) return null;
  const [first, ...rest] = reference.text.split("\n");
  return tile("normal", reference.is_inside ? "yes" : "no", reference.is_inside ? first : rest.map((line) => line.trim()).join("; ") || first, reference.is_inside ? "up" : "down");
}

// The latest numbers, beside those of the first step.
function tiles(data) {
  const { row, metrics } = data, first = metrics[0] ?? {}, last = metrics[metrics.length - 1] ?? {};
  const change = (name, key, format) => (isMissing(last[key]) ? null : tile(name, format(last[key]), `${format(first[key])} at step ${first.step}`));
  return [
    tile("steps done", `${number(row.step)} / ${number(row.steps)}`, row.seconds_left ? `${duration(row.seconds_left)} left` : row.status),
    learningTile(data), healthTile(data), normalTile(data),
    change("correct in training", "correct", percent),
    change("response length", "completions/mean_length", (value) => `${number(value, 1)} tokens`),
    change("self-check rate", CHECKS, percent),
  ];
}

export async function open(root, page) {
  const run = page.params.run;
  let data = await ask("overview", { run });
  const view = { smoothing: Number(page.params.smooth ?? 0), axis: page.params.x ?? "step", log: page.params.log === "1" };
  const charts = new Map();
  const alarms = el("div", { class: "alarms", role: "status", "aria-label": "alarms" }), top = el("div", { class: "tiles" });
  const large = el("div", { class: "grid two" }), health = el("div", { class: "grid four" });
  const lastStep = (rows) => rows[rows.length - 1]?.step ?? 0;
  const openRollouts = ({ step }) => page.go("rollouts", { run, step: String(Math.min(step, Math.max(lastStep(data.metrics), lastStep(data.steps)))) });

  // Update a chart, or create it in its box.
  function drawChart(key, box, title, lines, options) {
    const content = { lines, log: view.log, xname: view.axis };
    if (charts.has(key)) return charts.get(key).update(content);
    charts.set(key, chart({ title, onpick: openRollouts, ...options, ...content }));
    box.append(charts.get(key));
  }
  function draw() {
    for (const [title, { lines, ...options }] of Object.entries(largeCharts(data, view))) drawChart(title, large, title, lines, options);
    const { metric, validation, normal } = seriesOf(data, view);
    for (const { name, label, unit } of data.metric_names.filter((row) => row.places.includes("health"))) {
      const isShare = unit === "share";
      const line = name.startsWith("validation/") ? validation("latest", (one) => one.measures[name]) : metric("latest", name);
      drawChart(name, health, label, [line, normal(name)], { height: 110, unit: isShare ? "" : unit, isShare });
    }
    const isGrowing = ["live", "starting"].includes(data.row.status);  // in another run an empty chart stays empty
    for (const figure of charts.values()) figure.hidden = !isGrowing && !figure.querySelector(".key");
    put(top, tiles(data));
    put(alarms, data.alarms.map((alarm) => alarmCard(alarm, run)));
  }
  shareZoom(root);
  const controls = viewControls(view, data, page, draw);
  if (!data.metrics.length && !data.steps.length) {
    put(root, controls, empty("This run has not finished a step yet. The page is updated by itself."), top, alarms, large, health);
  } else put(root, controls, top, alarms, large, card("Health", health), card("Settings other than the defaults", settingsTable(data.settings), syncLine(data)));
  draw();

  return { live: async () => {
    const next = await ask("overview", { run, since: nextStep(data) });
    if (!hasNews(data, next)) return;
    data = merge(data, next);
    root.querySelector(".empty")?.remove();
    draw();
  } };
}

// The name of the run, and the choices of axis, smoothing and scale.
function viewControls(view, { row }, page, draw) {
  const change = (values, parameters) => { Object.assign(view, values); page.set(parameters); draw(); };
  const slider = el("input", {
    type: "range", min: "0", max: "0.95", step: "0.05", value: String(view.smoothing), "aria-label": "smoothing",
    oninput: (event) => change({ smoothing: Number(event.target.value) }, { smooth: event.target.value }),
  });
  return el("div", { class: "bar-row" },
    el("h1", {}, page.params.run), el("span", { class: "muted" }, `${row.model ?? ""} · ${row.algorithm ?? ""}`),
    select("x axis", ["step", "tokens", "minutes"], view.axis, (axis) => change({ axis }, { x: axis })),
    el("label", {}, "smoothing ", slider),
    checkbox("log scale", view.log, (log) => change({ log }, { log: log ? 1 : "" })),
    link("rollouts", { run: page.params.run }, "rollouts"), link("reflection", { run: page.params.run }, "reflection"));
}

// The first step that is not complete here: its metrics come after its rollouts, a validation later. Some runs have no rollouts.
function nextStep({ metrics, steps }) {
  const after = (rows) => (rows.length ? rows[rows.length - 1].step + 1 : 0);
  return steps.length ? Math.min(after(metrics), after(steps)) : after(metrics);
}

// Whether a reply has something that the page does not show yet.
function hasNews(data, next) {
  const isNew = (key) => next[key].some((row) => !data[key].some((old) => old.step === row.step));
  return ["metrics", "steps", "validations"].some(isNew) || next.row.status !== data.row.status
    || JSON.stringify(next.alarms) !== JSON.stringify(data.alarms);
}

// The data with the rows of a later reply.
function merge(data, next) {
  const rows = (key) => [...data[key].filter((old) => !next[key].some((row) => row.step === old.step)), ...next[key]].sort((a, b) => a.step - b.step);
  return { ...next, metrics: rows("metrics"), steps: rows("steps"), validations: rows("validations") };
}

// An alarm with its meaning and the remedy.
function alarmCard(alarm, run) {
  return el("section", { class: `card${alarm.is_active ? " error" : ""}`, data: { alarm: alarm.name } },
    el("h2", {}, alarm.name, " ", el("span", { class: `badge ${alarm.is_active ? "bad" : "neutral"}` }, alarm.is_active ? "active" : "resolved")),
    el("p", {}, "Since ", link("rollouts", { run, step: String(alarm.step) }, `step ${alarm.step}`),
      `: ${alarm.when} (${number(alarm.value)}, limit ${number(alarm.limit)}).`),
    el("p", {}, alarm.meaning, " ", el("b", {}, "Remedy: "), alarm.help));
}

// The settings that are not defaults, with their origin.
function settingsTable({ config = {}, origin = {} }) {
  const rows = Object.entries(config).filter(([key]) => (origin[key] ?? "") !== "default");
  return table(null, rows.map(([key, value]) => [el("code", {}, key), String(value), el("span", { class: "muted" }, origin[key] ?? "")]));
}

// Whether the engine takes the weights that it is sent.
const syncLine = ({ weight_sync: certificate }) => (certificate ? el("p", { class: "muted", data: { sync: "" } }, `weight sync: ${visible(certificate)}`) : null);
