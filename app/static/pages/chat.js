// Sample answers to a question from a run's model. Tokens appear as they are sampled; answers are graded as in training.
import { ask, card, el, link, number, percent, put, select, verdictBadge, visible } from "../core.js";

const FIRST_QUESTION = { question: "What is 347 * 6 - 158?", gold: "1924" };

// The request of the address: the model is the one named there, else that of the selected run, else the base model.
function requestOf({ model, run, checkpoint = "", question, gold, rule = "maths", begin = "" }, models) {
  const isKnown = (name) => models.some((entry) => entry.model === name);
  return {
    model: [model, run].find(isKnown) ?? models[0].model, step: checkpoint, question: question ?? FIRST_QUESTION.question,
    gold: gold ?? (question ? "" : FIRST_QUESTION.gold), rule, begin,
  };
}

// Read the lines of JSON of a response; calls `onevent` with each.
async function readEvents(response, onevent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) onevent(JSON.parse(line));
  }
}

// Verdict, answer and reward of a completion.
function scoreParts(score) {
  if (!score) return null;
  const layer = score.layer ? `, decided by ${score.layer}` : "";
  return [verdictBadge(score.verdict), el("span", {}, `answer ${visible(score.extracted ?? "none")}, reward ${number(score.reward)}${layer}`),
    score.is_leniently_correct && score.verdict !== "correct"
      ? el("span", { class: "badge warn", title: "the last answer anywhere in the text is correct" }, "correct, but not well-formed") : null];
}

// The completions of a request, one column each. `oncontinue` is called with the beginning of a new response.
class Answers {
  constructor(oncontinue) {
    this.oncontinue = oncontinue;
    this.box = el("div", { class: "columns", data: { answers: "" } });
    this.clear();
  }

  clear() {
    this.columns = new Map();
    put(this.box);
  }

  // The column of a sample; it is created with the first event.
  column(sample) {
    if (!this.columns.has(sample)) {
      const column = { text: el("div", { class: "text tokens", dir: "ltr" }), foot: el("div", { class: "bar-row" }), completion: "", score: null };
      this.columns.set(sample, column);
      this.box.append(el("article", { class: "card", data: { sample: String(sample) } }, column.text, column.foot));
    }
    return this.columns.get(sample);
  }

  // Add a token, or the end of a sample.
  take(event) {
    if (event.text !== undefined) {
      const column = this.column(event.sample), isPrefill = event.logprob === undefined;
      const title = isPrefill ? "part of the prompt, not sampled" : `p ${percent(Math.exp(event.logprob))}`;
      column.completion += event.text;
      column.text.append(el("span", { class: isPrefill ? "prefill" : "token", title }, event.text));
    }
    if (event.ended) this.end(this.column(event.sample), event);
  }

  end(column, { tokens, ended, score }) {
    column.score = score;
    const begin = () => `${column.completion.split("</think>")[0].trimEnd()} Wait,`;
    put(column.foot, el("span", { class: "muted" }, `${number(tokens)} tokens, ended by ${ended}`), scoreParts(score),
      el("button", { title: "write the beginning of the response yourself, starting from this one", onclick: () => this.oncontinue(begin()) }, "edit and continue"));
  }

  // The answers with their numbers, the most frequent first; "" for fewer than two answers.
  votes() {
    const answers = [...this.columns.values()].map((column) => column.score?.extracted).filter(Boolean), counts = new Map();
    for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1);
    if (answers.length < 2) return "";
    return ` · votes: ${[...counts].sort((a, b) => b[1] - a[1]).map(([answer, n]) => `${visible(answer)} × ${n}`).join(", ")}`;
  }
}

// The sentence that says which model is asked, and why it is not the selected run's.
function modelNote(request, entry, page, models) {
  const { model, run } = page.params, isKnown = (name) => models.some((one) => one.model === name);
  const name = request.model === "base" ? "the embedded base model" : `run ${request.model}`;
  const checkpoint = !entry.steps.length ? "" : request.step === "" ? ", its last checkpoint"
    : request.step === "best" ? ", its best checkpoint" : `, after ${request.step} steps`;
  const missing = [...new Set([model, run])].filter((one) => one && !isKnown(one));
  return ["Asks ", el("b", {}, name), `${checkpoint}.`, missing.map((one) => ` Run ${one} has no checkpoint to sample from.`),
    run && run !== request.model && isKnown(run)
      ? [` The selected run is ${run}: `, link("chat", { ...page.params, model: "", checkpoint: "" }, `ask ${run}`), "."] : null];
}

export async function open(root, page) {
  const { models, rules, max_samples: maxSamples, max_tokens: maxTokens } = await ask("models");
  const request = requestOf(page.params, models), entry = () => models.find((one) => one.model === request.model);
  let controller = null;  // of the request that is being answered
  const note = el("p", { role: "status", class: "muted", data: { note: "" } }), form = el("div", { class: "chat-form" });
  const status = el("p", { role: "status", class: "muted", data: { chat: "idle" } });
  const start = el("button", { class: "main", onclick: () => sample() }, "ask");
  const stop = el("button", { disabled: true, onclick: () => controller?.abort() }, "stop");
  const answers = new Answers((begin) => { change({ begin }); drawForm(); });
  const drawNote = () => put(note, modelNote(request, entry(), page, models));

  // Change the request and the address, in which `step` is called checkpoint.
  function change(values) {
    Object.assign(request, values);
    const { step, ...others } = values;
    page.set(step === undefined ? others : { ...others, checkpoint: step });
  }
  // A field of several lines, with its name as the label.
  const textField = (name, rows, data = {}) => el("label", { class: "wide" }, name,
    el("textarea", { "aria-label": name, rows, data, onchange: (event) => change({ [name]: event.target.value }) }, request[name]));
  const numberField = (name, value, low, high, step) => el("label", {}, name.replace("_", " "),
    el("input", { type: "number", "aria-label": name, value: String(value), min: String(low), max: String(high), step: String(step), data: { number: name } }));

  function drawForm() {
    drawNote();
    const { steps, defaults } = entry();
    const checkpoints = [["", steps.length ? "last checkpoint" : "as shipped"], ...steps.map((step) => [step, step === "best" ? "best" : `after ${step} steps`])];
    const gold = el("input", {
      "aria-label": "gold", placeholder: "the correct answer, if the completions are to be graded", value: request.gold,
      onchange: (event) => change({ gold: event.target.value }),
    });
    put(form, el("div", { class: "bar-row" },
      select("model", models.map((one) => one.model), request.model, (model) => { change({ model, step: "" }); drawForm(); }),
      select("checkpoint", checkpoints, request.step, (step) => { change({ step }); drawNote(); }),
      numberField("temperature", defaults.temperature ?? 1, 0, 5, 0.1), numberField("samples", 2, 1, maxSamples, 1),
      numberField("max_tokens", defaults.max_tokens ?? maxTokens, 1, 32768, 1), numberField("seed", 0, 0, 2147483647, 1)),
    textField("question", "3", { search: "" }),
    el("div", { class: "bar-row" }, el("label", { class: "wide" }, "gold", gold), select("rule", rules, request.rule, (rule) => change({ rule })), start, stop),
    el("details", { open: Boolean(request.begin) }, el("summary", {}, "write the beginning of the response (“… Wait,”); the model continues it"),
      textField("begin", "2")));
  }
  // The values of the form, which may be typed in without a change event yet.
  function formValues() {
    const numbers = [...form.querySelectorAll("[data-number]")].map((input) => [input.dataset.number, Number(input.value)]);
    for (const name of ["question", "gold", "begin"]) request[name] = form.querySelector(`[aria-label="${name}"]`).value;
    return { ...request, ...Object.fromEntries(numbers) };
  }
  function setStatus(state, text) {
    status.dataset.chat = state;
    status.textContent = text;
  }
  function onEvent(event) {
    if (event.loading) setStatus("running", `loading ${event.loading} …`);
    if (event.prompt) setStatus("running", "sampling …");
    if (event.error) setStatus("error", event.error);
    answers.take(event);
  }
  // Send the request and show the completions as they are sampled.
  async function sample() {
    controller?.abort();
    controller = new AbortController();
    const body = JSON.stringify(formValues());
    answers.clear();
    start.disabled = true; stop.disabled = false;
    setStatus("running", "request sent");
    try {
      const response = await fetch("/chat", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal: controller.signal });
      if (!response.ok) throw new Error((await response.json()).error);
      await readEvents(response, onEvent);
      if (status.dataset.chat !== "error") setStatus("done", "done");
    } catch (error) {
      if (error.name === "AbortError") setStatus("stopped", "stopped"); else setStatus("error", error.message);
    }
    start.disabled = false; stop.disabled = true;
    status.textContent += answers.votes();
  }
  put(root, el("h1", {}, "Chat"), note, card(null, form), status, answers.box);
  drawForm();
  return { close: () => controller?.abort() };
}
