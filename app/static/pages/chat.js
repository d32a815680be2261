// Ask a model of a run, see the tokens come, have the answer graded as training would.
import { ask, card, el, link, number, percent, put, select, verdict, visible } from "../core.js";

export async function open(root, page) {
  const { models, rules, most_samples: most, max_tokens: longest } = await ask("models");
  const { run: picked, model: named } = page.params, known = (model) => models.some((m) => m.model === model);
  // The model of the address, else the one of the run that is picked, else the embedded base.
  const given = { model: [named, picked].find(known) ?? models[0].model, step: page.params.checkpoint ?? "", question: page.params.question ?? "What is 347 * 6 - 158?", gold: page.params.gold ?? (page.params.question ? "" : "1924"), rule: page.params.rule ?? "maths", begin: page.params.begin ?? "" };
  let running = null;
  const entry = () => models.find((m) => m.model === given.model);
  const field = (name, tag, extra = {}) => el("label", { class: "wide" }, name, el(tag, { "aria-label": name, ...extra, onchange: (e) => { given[name] = e.target.value; page.set({ [name]: e.target.value }); } }, tag === "textarea" ? given[name] : ""));
  const numberField = (name, value, low, high, step) => el("label", {}, name, el("input", { type: "number", "aria-label": name, value: String(value), min: String(low), max: String(high), step: String(step), data: { number: name } }));
  const note = el("p", { role: "status", class: "muted", data: { note: "" } }), form = el("div", { class: "play-form" }), out = el("div", { class: "columns", data: { answers: "" } }), status = el("p", { role: "status", class: "muted", data: { play: "idle" } });
  const start = el("button", { class: "main", onclick: () => run() }, "ask"), stop = el("button", { disabled: true, onclick: () => running?.abort() }, "stop");

  // Which model is asked, and why it is not the picked run's where it is not.
  function drawNote() {
    const name = given.model === "base" ? "the embedded base model" : `run ${given.model}`;
    const checkpoint = !entry().steps.length ? "" : given.step === "" ? ", its last checkpoint" : given.step === "best" ? ", its best checkpoint" : `, after ${given.step} steps`;
    put(note, "Asks ", el("b", {}, name), `${checkpoint}.`,
      [...new Set([named, picked])].filter((run) => run && !known(run)).map((run) => ` Run ${run} has no checkpoint to sample from.`),
      picked && picked !== given.model && known(picked) ? [` The run that is picked above is ${picked}: `, link("play", { ...page.params, model: "", checkpoint: "" }, `ask ${picked}`), "."] : null);
  }
  function draw() {
    drawNote();
    const steps = [["", entry().steps.length ? "last checkpoint" : "as shipped"], ...entry().steps.map((s) => [s, s === "best" ? "best" : `after ${s} steps`])];
    const d = entry().defaults;
    put(form, el("div", { class: "bar-row" },
      select("model", models.map((m) => m.model), given.model, (v) => { given.model = v; given.step = ""; page.set({ model: v, checkpoint: "" }); draw(); }),
      select("checkpoint", steps, given.step, (v) => { given.step = v; page.set({ checkpoint: v }); drawNote(); }),
      numberField("temperature", d.temperature ?? 1, 0, 5, 0.1), numberField("samples", 2, 1, most, 1), numberField("max_tokens", d.max_tokens ?? longest, 1, 32768, 1), numberField("seed", 0, 0, 2147483647, 1)),
    field("question", "textarea", { rows: "3", data: { search: "" } }),
    el("div", { class: "bar-row" }, el("label", { class: "wide" }, "gold", el("input", { "aria-label": "gold", placeholder: "the right answer, to have it graded", value: given.gold, onchange: (e) => { given.gold = e.target.value; page.set({ gold: e.target.value }); } })), select("rule", rules, given.rule, (v) => { given.rule = v; page.set({ rule: v }); }), start, stop),
    el("details", { open: Boolean(given.begin) }, el("summary", {}, "begin the response yourself (“… Wait,”) and let the model go on"), field("begin", "textarea", { rows: "2" })));
  }

  async function run() {
    running?.abort();
    running = new AbortController();
    const mine = running;
    const values = Object.fromEntries([...form.querySelectorAll("[data-number]")].map((input) => [input.dataset.number, Number(input.value)]));
    for (const name of ["question", "gold", "begin"]) given[name] = form.querySelector(`[aria-label="${name}"]`).value;
    put(out); start.disabled = true; stop.disabled = false; status.dataset.play = "running"; status.textContent = "request sent";
    const columns = new Map();
    const column = (sample) => {
      if (!columns.has(sample)) {
        const text = el("div", { class: "text tokens", dir: "ltr" }), foot = el("div", { class: "bar-row" }), more = el("div");
        columns.set(sample, { text, foot, more, raw: "" });
        out.append(el("article", { class: "card", data: { sample: String(sample) } }, text, foot, more));
      }
      return columns.get(sample);
    };
    try {
      const reply = await fetch("/play", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...given, ...values }), signal: mine.signal });
      if (!reply.ok) throw new Error((await reply.json()).error);
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) take(JSON.parse(line), column);
      }
      status.textContent = status.dataset.play === "error" ? status.textContent : "done";
      if (status.dataset.play !== "error") status.dataset.play = "done";
    } catch (error) {
      status.dataset.play = error.name === "AbortError" ? "stopped" : "error";
      status.textContent = error.name === "AbortError" ? "stopped" : error.message;
    }
    start.disabled = false; stop.disabled = true;
    votes(columns);
  }
  function take(event, column) {
    if (event.loading) status.textContent = `loading ${event.loading} …`;
    if (event.prompt) { status.textContent = "writing"; }
    if (event.error) { status.dataset.play = "error"; status.textContent = event.error; }
    if (event.text !== undefined) {
      const c = column(event.sample);
      c.raw += event.text;
      c.text.append(el("span", { class: event.logprob === undefined ? "prefill" : "t", title: event.logprob === undefined ? "given" : `p ${percent(Math.exp(event.logprob))}` }, event.text));
    }
    if (event.ended) {
      const c = column(event.sample);
      c.score = event.score;
      put(c.foot, el("span", { class: "muted" }, `${number(event.tokens)} tokens, ended by ${event.ended}`), event.score ? [verdict(event.score.verdict), el("span", {}, `answer ${visible(event.score.extracted ?? "none")}, reward ${number(event.score.reward)}${event.score.layer ? `, decided by ${event.score.layer}` : ""}`), event.score.lenient && event.score.verdict !== "correct" ? el("span", { class: "badge warn" }, "right in any form") : null] : null,
        el("button", { title: "go on from here in your own words", onclick: () => { given.begin = c.raw.split("</think>")[0].trimEnd() + " Wait,"; page.set({ begin: given.begin }); draw(); } }, "edit and go on"));
    }
  }
  function votes(columns) {
    const answers = [...columns.values()].map((c) => c.score?.extracted).filter(Boolean);
    if (answers.length > 1) {
      const counts = new Map();
      for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1);
      status.textContent += ` · votes: ${[...counts].sort((a, b) => b[1] - a[1]).map(([answer, n]) => `${visible(answer)} × ${n}`).join(", ")}`;
    }
  }
  put(root, el("h1", {}, "Play"), note, card(null, form), status, out);
  draw();
  return { close: () => running?.abort() };
}
