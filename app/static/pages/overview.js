// DeepSeek-R1-Zero's figures of one run, and its alarms.
import { chart, smoothed } from "../chart.js";
import { ask, card, duration, el, empty, link, number, percent, put, select } from "../core.js";

export async function open(root, page) {
  const run = page.params.run;
  let found = await ask("overview", { run });
  let smooth = Number(page.params.smooth ?? 0), axis = page.params.x ?? "step", log = page.params.log === "1";
  const charts = new Map();
  const alarms = el("div", { class: "alarms", role: "status", "aria-label": "alarms" }), top = el("div", { class: "tiles" }), figures = el("div", { class: "grid two" }), health = el("div", { class: "grid four" });

  const X = () => {
    const tokens = [], seconds = [];
    let t = 0, s = 0;
    for (const line of found.metrics) {
      t += (line.tokens_per_second ?? 0) * (line["time/step"] ?? 0);
      s += line["time/step"] ?? 0;
      tokens[line.step + 1] = t; seconds[line.step + 1] = s;
    }
    const of = { step: (n) => n, tokens: (n) => (n ? tokens[n] : 0), minutes: (n) => (n ? seconds[n] / 60 : 0) };
    return of[axis] ?? of.step;
  };
  function line(name, key, options = {}) {
    const x = X();
    const points = found.metrics.filter((m) => m[key] !== undefined).map((m) => ({ x: x(m.step + 1), y: m[key], step: m.step }));
    return { name, points: smoothed(points, options.raw ? 0 : smooth), ...options };
  }
  function stepLine(name, key, options = {}) {
    const x = X();
    return { name, points: smoothed(found.steps.filter((s) => s[key] !== null).map((s) => ({ x: x(s.step + 1) ?? s.step + 1, y: s[key], step: s.step })), smooth), ...options };
  }
  function looks(name, read, options = {}) {
    const x = X();
    return { name, points: found.looks.map((look) => [look, read(look)]).filter(([, e]) => e).map(([look, e]) => ({ x: x(look.step), y: e.value, low: e.low, high: e.high, step: look.step })), ...options };
  }
  const cons = (look) => Object.entries(look.metrics).find(([name]) => name.startsWith("cons@"));
  const pick = (point) => page.go("rollouts", { run, step: String(Math.max(0, point.step ?? point.x - 1)) });

  function lines() {
    const k = found.looks.length ? cons(found.looks[0])?.[0] ?? "cons@k" : "cons@k";
    return {
      "Accuracy": { lines: [looks("pass@1", (l) => l.metrics["pass@1"]), looks(k, (l) => cons(l)?.[1]), looks("greedy", (l) => l.greedy), line("training, correct", "correct", { thin: true })], isShare: true },
      "Response length": { lines: [line("tokens", "completions/mean_length"), stepLine("of right ones", "tokens_correct", { colour: "--good" }), stepLine("of wrong ones", "tokens_wrong", { colour: "--bad" }), stepLine("95th percentile", "tokens_p95", { dashed: true, thin: true })], least: 0, unit: "tokens" },
      "Reward": { lines: [line("reward", "reward/mean"), line("correct", "correct"), line("well-formed", "well_formed")], least: 0 },
      "Reflection": { lines: [line("check their own working", "reflection/self_check_rate"), line("wrong claims caught", "reflection/errors_caught"), { name: "untrained model checks", dashed: true, colour: "--muted", points: baseLine() }], isShare: true },
    };
  }
  function baseLine() {
    const first = found.metrics[0], last = found.metrics[found.metrics.length - 1], x = X();
    return first && first.step === 0 && first["reflection/self_check_rate"] !== undefined ? [{ x: x(1), y: first["reflection/self_check_rate"] }, { x: x(last.step + 1), y: first["reflection/self_check_rate"] }] : [];
  }
  function draw() {
    for (const [title, options] of Object.entries(lines())) {
      if (charts.has(title)) charts.get(title).update({ lines: options.lines, log, xname: axis });
      else { charts.set(title, chart({ title, onpick: pick, xname: axis, log, ...options })); figures.append(charts.get(title)); }
    }
    for (const { name: key, label: title, unit } of found.metric_names.filter((row) => row.places.includes("health"))) {
      const data = { lines: [line(title, key)], log, xname: axis };
      if (charts.has(key)) charts.get(key).update(data);
      else { charts.set(key, chart({ title, height: 110, onpick: pick, isShare: unit === "share", unit: unit === "share" ? "" : unit, ...data })); health.append(charts.get(key)); }
    }
    const growing = ["live", "starting"].includes(found.row.status);  // elsewhere an empty chart will stay empty
    for (const drawn of charts.values()) drawn.hidden = !growing && !drawn.querySelector(".key");
    const m = found.metrics[found.metrics.length - 1] ?? {}, first = found.metrics[0] ?? {};
    const look = found.looks[found.looks.length - 1];
    const tile = (name, value, note) => el("div", { class: "tile", data: { tile: name } }, el("span", {}, name), el("b", {}, value), el("small", {}, note ?? ""));
    put(top,
      tile("step", `${found.row.step} / ${found.row.steps ?? "–"}`, found.row.left ? `${duration(found.row.left)} left` : found.row.status),
      tile("pass@1", look ? percent(look.metrics["pass@1"].value) : "–", look ? `[${percent(look.metrics["pass@1"].low)}, ${percent(look.metrics["pass@1"].high)}] on ${look.problems} validation problems` : "no look yet"),
      tile("correct in training", percent(m.correct), `at first ${percent(first.correct)}`),
      tile("tokens", number(m["completions/mean_length"], 1), `at first ${number(first["completions/mean_length"], 1)}`),
      tile("check themselves", percent(m["reflection/self_check_rate"]), `at first ${percent(first["reflection/self_check_rate"])}`),
      tile("KL", number(m.kl), "nats per token"));
    put(alarms, found.alarms.map((alarm) => shown(alarm, run)));
  }
  const controls = el("div", { class: "bar-row" }, el("h1", {}, run), el("span", { class: "muted" }, `${found.row.model ?? ""} · ${found.row.algorithm ?? ""}`),
    select("x axis", ["step", "tokens", "minutes"], axis, (v) => { axis = v; page.set({ x: v }); draw(); }),
    el("label", {}, "smoothing ", el("input", { type: "range", min: "0", max: "0.95", step: "0.05", value: String(smooth), "aria-label": "smoothing", oninput: (e) => { smooth = Number(e.target.value); page.set({ smooth }); draw(); } })),
    el("label", {}, el("input", { type: "checkbox", checked: log, onchange: (e) => { log = e.target.checked; page.set({ log: log ? 1 : "" }); draw(); } }), " log scale"),
    link("rollouts", { run }, "rollouts"), link("aha", { run }, "reflection"));
  if (!found.metrics.length && !found.steps.length) put(root, controls, empty("This run has made no step yet; the page fills by itself."), alarms, top, figures, health);
  else put(root, controls, alarms, top, figures, card("Health", health), card("Settings that were chosen", settings(found.settings)));
  draw();
  return { live: async () => {
    const since = Math.max(0, ...found.metrics.map((m) => m.step + 1), ...found.steps.map((s) => s.step + 1));
    const fresh = await ask("overview", { run, since: Math.max(0, Math.min(since, (found.steps.at(-1)?.step ?? -1) + 1)) });
    const grown = fresh.metrics.some((m) => m.step >= since) || fresh.steps.length || fresh.looks.some((l) => !found.looks.find((o) => o.step === l.step)) || fresh.row.status !== found.row.status || fresh.alarms.length !== found.alarms.length;
    const merge = (key) => [...found[key].filter((old) => !fresh[key].some((one) => one.step === old.step)), ...fresh[key]].sort((a, b) => a.step - b.step);
    found = { ...fresh, metrics: merge("metrics"), steps: merge("steps"), looks: merge("looks") };
    if (grown) { root.querySelector(".empty")?.remove(); draw(); }
  } };
}

function shown(alarm, run) {
  return el("section", { class: `card${alarm.rings ? " error" : ""}`, data: { alarm: alarm.name } },
    el("h2", {}, alarm.name, " ", el("span", { class: `badge ${alarm.rings ? "bad" : "odd"}` }, alarm.rings ? "active" : "resolved")),
    el("p", {}, "From ", link("rollouts", { run, step: String(alarm.step) }, `step ${alarm.step}`), ` on: ${alarm.when} (${number(alarm.value)}, limit ${number(alarm.limit)}).`),
    el("p", {}, alarm.meaning, " ", el("b", {}, "What helps: "), alarm.help));
}

function settings({ config = {}, origin = {} }) {
  const rows = Object.entries(config).filter(([key]) => (origin[key] ?? "") !== "default");
  return el("div", { class: "scroll" }, el("table", {}, rows.map(([key, value]) => el("tr", {}, el("td", {}, el("code", {}, key)), el("td", {}, String(value)), el("td", { class: "muted" }, origin[key] ?? "")))));
}
