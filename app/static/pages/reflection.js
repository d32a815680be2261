// Second thoughts: how often, what came of them, whether they go with being right, and the best ones.
import { bars, chart } from "../chart.js";
import { ask, card, el, empty, link, number, percent, put, select, visible } from "../core.js";

const MEANINGS = {
  cue: "words of reflection in context, without a claim about their effect",
  "self-correction": "what stood before the cue is wrong, what stands after it is right",
  aha: "a self-correction in a response that is right in the end, on a question that the other completions of its group, those without one, mostly get wrong",
};

export async function open(root, page) {
  const { run } = page.params;
  let label = page.params.label ?? "", offset = 0, search = page.params.q ?? "wait", found = await ask("aha", { run, label });
  const head = el("div"), curves = el("div", { class: "grid two" }), tables = el("div", { class: "grid three" }), cards = el("div", { class: "gallery", data: { gallery: "" } }), more = el("div", { class: "bar-row" });
  const wordBox = el("div"), wordCount = el("span", { class: "muted", data: { words: "" } });
  let rates, outcomes, words;
  const pick = (point) => page.go("rollouts", { run, step: String(point.x), label: "self-correction" });

  const series = (group, names) => names.map((name) => ({ name, points: found.timeline.map((t) => ({ x: t.step, y: t[group][name] })) })).filter((line) => line.points.some((p) => p.y > 0));
  function base() {
    const first = found.timeline[0], last = found.timeline[found.timeline.length - 1];
    if (!first || first.step !== 0) return [];
    const y = found.kinds.reduce((sum, kind) => sum + first.kinds[kind], 0);
    return [{ name: "all cues at step 0", dashed: true, colour: "--muted", points: [{ x: 0, y }, { x: last.step, y }] }];
  }
  const kindLines = () => [{ name: "all cues", points: found.timeline.map((t) => ({ x: t.step, y: found.kinds.reduce((sum, kind) => sum + t.kinds[kind], 0) })) }, ...series("kinds", found.kinds).map((line) => ({ ...line, thin: true })), ...base()];
  const labelLines = () => [{ name: "all self-corrections", points: found.timeline.map((t) => ({ x: t.step, y: t.labels["self-correction"] + t.labels.aha })) }, ...series("labels", ["aha"]).map((line) => ({ ...line, name: "of them aha" }))];

  function draw() {
    const up = found.uplift.difference;
    const part = found.studied < found.steps ? `studied ${found.studied} of ${found.steps} steps so far` : `${found.studied} steps`;
    put(head, el("div", { class: "bar-row" }, el("h1", {}, "Second thoughts"), el("span", { class: "muted", data: { studied: String(found.studied) } }, part)),
      el("div", { class: "tiles" },
        tile("cues", Object.values(found.totals.labels).reduce((a, b) => a + b, 0)), tile("self-corrections", (found.totals.labels["self-correction"] ?? 0) + (found.totals.labels.aha ?? 0)), tile("aha", found.totals.labels.aha ?? 0),
        el("div", { class: "tile", data: { tile: "uplift" } }, el("span", {}, "right, with less without"), el("b", {}, up ? `${(100 * up.mean).toFixed(1)} points` : "–"), el("small", {}, up ? `[${(100 * up.low).toFixed(1)}, ${(100 * up.high).toFixed(1)}] over ${found.uplift.groups} groups that have both` : `${found.uplift.groups} groups have both`)),
        el("div", { class: "tile" }, el("span", {}, "first that came right"), el("b", {}, found.first_correction ? link("rollouts", { run, rollout: found.first_correction }, found.first_correction) : "–"), el("small", {}, "step.group.sample"))),
      el("p", { class: "muted" }, "Words as they are meant here. ", Object.entries(MEANINGS).map(([name, text]) => [el("b", {}, name), `: ${text}. `]), "The difference within groups is an association, not a cause: a completion that sets out to work the problem through also has more to check."));
    if (rates) { rates.update({ lines: kindLines() }); outcomes.update({ lines: labelLines() }); }
    else {
      rates = chart({ title: "Cues per 1,000 tokens", lines: kindLines(), least: 0, onpick: pick });
      outcomes = chart({ title: "Self-corrections per 1,000 tokens", lines: labelLines(), least: 0, onpick: pick });
      curves.append(rates, outcomes);
    }
    const list = (counts, names) => names.map((name) => ({ name, value: counts[name] ?? 0 }));
    put(tables, card("What came of them", bars(list(found.totals.outcomes, Object.keys(found.outcomes)).map((item) => ({ ...item, title: found.outcomes[item.name], class: { correct: "up", harm: "down", switch: "down", missed: "down" }[item.name] })))),
      card("Kinds of cues", bars(list(found.totals.kinds, found.kinds).map((item) => ({ ...item, name: item.name === "aha" ? "“aha”, “I see”" : item.name })))),
      card("Any words", el("div", { class: "bar-row" }, el("input", { value: search, "aria-label": "words", placeholder: 'wait, "aha moment", recheck*', data: { search: "" }, onchange: (event) => { search = event.target.value; page.set({ q: search }); count(); } }), wordCount), wordBox));
  }
  const tile = (name, value) => el("div", { class: "tile", data: { tile: name } }, el("span", {}, name), el("b", {}, number(value)));

  async function count() {
    try {
      const got = await ask("words", { run, text: search });
      wordCount.textContent = `${number(got.total)} completions`;
      words = chart({ title: `completions with ${got.text}`, lines: [{ name: "share", points: got.points.map((p) => ({ x: p.step, y: p.share })) }], isShare: true, height: 120, onpick: (p) => page.go("rollouts", { run, step: String(p.x), text: search }) });
      put(wordBox, words);
    } catch (error) { wordCount.textContent = error.message; }
  }
  function drawCards(add) {
    const made = found.gallery.map((item) => el("article", { class: "card", data: { card: item.name, label: item.label, score: String(item.score) } },
      el("div", { class: "bar-row" }, el("span", { class: `badge ${item.label === "cue" ? "odd" : "good"}` }, item.label), link("rollouts", { run, rollout: item.name }, item.name), el("span", { class: "muted" }, `${item.kind} · ${item.outcome}${item.before ? `: ${visible(item.before)} → ${visible(item.after)}` : ""}`)),
      el("small", {}, item.question), el("div", { class: "text", dir: "ltr" }, item.cut[0] ? "… " : "", item.excerpt[0], el("mark", { class: `cue ${item.label}` }, item.excerpt[1]), item.excerpt[2], item.cut[1] ? " …" : ""),
      el("small", { class: "muted" }, `others of its group right: ${percent(item.others_right, 0)} · in the end ${item.correct ? "right" : "wrong"}`)));
    if (add) cards.append(...made); else put(cards, made.length ? made : empty("No reflection span with this label was detected."));
    put(more, found.gallery.length === 12 ? el("button", { onclick: async () => { offset += 12; found = { ...found, ...(await ask("aha", { run, label, offset })) }; drawCards(true); } }, "more") : null);
  }
  async function filter(value) {
    label = value; offset = 0; page.set({ label });
    found = await ask("aha", { run, label });
    drawCards(false);
  }
  put(root, head, curves, tables, el("div", { class: "bar-row" }, el("h2", {}, "Gallery, the best evidence first"), select("label", [["", "all"], ...found.labels.map((l) => [l, l])], label, filter)), cards, more);
  draw(); drawCards(false);
  await count();
  return { live: async () => {
    const fresh = await ask("aha", { run, label });
    if (fresh.studied === found.studied && fresh.steps === found.steps) return;
    const was = found.gallery;
    found = fresh;
    draw();
    if (!offset) drawCards(false); else found.gallery = was;
    await count();
  } };
}
