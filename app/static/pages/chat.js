// Sample answers to a question from a run's model, or from two side by side. Tokens appear as they are sampled; answers are
// graded as in training.
import { ask, card, el, link, number, percent, put, select, verdictBadge, visible } from "../core.js";
import { problemPicker } from "../problem_picker.js";

const FIRST_QUESTION = { question: "What is 347 * 6 - 158?", gold: "1924" };
// The names in the address of the fields that have another name there: `step` is taken by other pages.
const ADDRESS_NAMES = { step: "checkpoint", otherStep: "other_checkpoint" };

// The request of the address: the model is the one named there, else that of the selected run, else the base model. The
// other model, which is asked the same, is "" for none.
function requestOf({ model, run, checkpoint = "", other = "", other_checkpoint: otherStep = "", question, gold, verifier = "maths", begin = "" }, steps) {
  return {
    model: [model, run].find((name) => steps.has(name)) ?? "base", step: checkpoint, other: steps.has(other) ? other : "", otherStep,
    question: question ?? FIRST_QUESTION.question, gold: gold ?? (question ? "" : FIRST_QUESTION.gold), verifier, begin,
  };
}

// A model and its checkpoint in words; `steps`: a Map of the checkpoints of each model.
function modelName(model, step, steps) {
  if (model === "base") return "the embedded base model";
  const checkpoint = !steps.get(model).length ? "" : step === "" ? ", its last checkpoint" : step === "best" ? ", its best checkpoint" : `, after ${step} steps`;
  return `run ${model}${checkpoint}`;
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

// The completions of a model, one column each. `oncontinue` is called with the beginning of a new response.
class Answers {
  constructor(name, oncontinue) {
    this.oncontinue = oncontinue;
    this.columns = new Map();
    this.list = el("div", { class: "columns" });
    this.status = el("p", { role: "status", class: "muted" });
    this.box = el("section", { data: { answers: name } }, el("h2", {}, name), this.status, this.list);
  }

  setStatus(text) { this.status.textContent = `${text}${this.summary()}`; }

  // The column of a sample; it is created with the first event.
  column(sample) {
    if (!this.columns.has(sample)) {
      const column = { text: el("div", { class: "text tokens", dir: "ltr" }), foot: el("div", { class: "bar-row" }), completion: "", score: null };
      this.columns.set(sample, column);
      this.list.append(el("article", { class: "card" }, column.text, column.foot));
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

  // The number of correct ones, and the answers with their numbers, the most frequent first; "" before one is graded.
  summary() {
    const scores = [...this.columns.values()].map((column) => column.score).filter(Boolean), counts = new Map();
    if (!scores.length) return "";
    for (const { extracted } of scores) if (extracted) counts.set(extracted, (counts.get(extracted) ?? 0) + 1);
    const votes = [...counts].sort((a, b) => b[1] - a[1]).map(([answer, n]) => `${visible(answer)} × ${n}`).join(", ");
    return ` · ${scores.filter((score) => score.verdict === "correct").length} of ${scores.length} correct${scores.length > 1 && votes ? ` · votes: ${votes}` : ""}`;
  }
}

// The sentence that says which models are asked, and why the first is not the selected run's.
function modelNote(request, page, steps) {
  const { model, run } = page.params, missing = [...new Set([model, run])].filter((one) => one && !steps.has(one));
  return ["Asks ", el("b", {}, modelName(request.model, request.step, steps)),
    request.other ? [", and ", el("b", {}, modelName(request.other, request.otherStep, steps))] : null, ".",
    missing.map((one) => ` Run ${one} has no checkpoint to sample from.`),
    run && run !== request.model && steps.has(run)
      ? [` The selected run is ${run}: `, link("chat", { ...page.params, model: "", checkpoint: "" }, `ask ${run}`), "."] : null];
}

export async function open(root, page) {
  const { models, verifiers, max_samples: maxSamples, max_tokens: maxTokens } = await ask("models");
  const steps = new Map(models.map((one) => [one.model, one.steps])), request = requestOf(page.params, steps);
  let controller = null;  // of the request that is being answered
  let typed = {};  // numbers by name of the field, in place of the model's defaults
  const note = el("p", { role: "status", class: "muted", data: { note: "" } }), form = el("div", { class: "chat-form" });
  const status = el("p", { role: "status", class: "muted", data: { chat: "idle" } });
  const start = el("button", { class: "main", onclick: () => sample() }, "ask");
  const stop = el("button", { disabled: true, onclick: () => controller?.abort() }, "stop");
  const results = el("div", { class: "grid two", data: { results: "" } });
  const fill = (values) => { change(values); drawForm(); };
  const drawNote = () => put(note, modelNote(request, page, steps));
  const source = [page.params.run, request.model].find((name) => name && name !== "base");
  const picker = source ? problemPicker(source, fill) : null;

  // Change the request and the address.
  function change(values) {
    Object.assign(request, values);
    page.set(Object.fromEntries(Object.entries(values).map(([name, value]) => [ADDRESS_NAMES[name] ?? name, value])));
  }
  // The checkpoints of a model as options.
  const checkpointsOf = (name) => [["", steps.get(name).length ? "last checkpoint" : "as shipped"],
    ...steps.get(name).map((step) => [step, step === "best" ? "best" : `after ${step} steps`])];
  // A field of several lines, with its name as the label.
  const textField = (name, rows, data = {}) => el("label", { class: "wide" }, name,
    el("textarea", { "aria-label": name, rows, data, onchange: (event) => change({ [name]: event.target.value }) }, request[name]));
  const numberField = (name, value, low, high, step) => el("label", {}, name.replace("_", " "), el("input", {
    type: "number", "aria-label": name, value: typed[name] ?? String(value), min: String(low), max: String(high), step: String(step), data: { number: name },
    oninput: (event) => { typed[name] = event.target.value; },
  }));

  function drawForm() {
    drawNote();
    const { defaults } = models.find((one) => one.model === request.model), names = [...steps.keys()];
    const gold = el("input", {
      "aria-label": "gold", placeholder: "the correct answer, if the completions are to be graded", value: request.gold,
      onchange: (event) => change({ gold: event.target.value }),
    });
    put(form, el("div", { class: "bar-row" },
      select("model", names, request.model, (model) => { typed = {}; fill({ model, step: "" }); }),
      select("checkpoint", checkpointsOf(request.model), request.step, (step) => { change({ step }); drawNote(); }),
      select("beside", [["", "no other"], ...names.map((name) => [name, name])], request.other, (other) => fill({ other, otherStep: "" })),
      request.other ? select("other step", checkpointsOf(request.other), request.otherStep, (otherStep) => { change({ otherStep }); drawNote(); }) : null,
      numberField("temperature", defaults.temperature ?? 1, 0, 5, 0.1), numberField("samples", 2, 1, maxSamples, 1),
      numberField("max_tokens", defaults.max_tokens ?? maxTokens, 1, 32768, 1), numberField("seed", 0, 0, 2147483647, 1)),
    textField("question", "3", { search: "" }),
    el("div", { class: "bar-row" }, el("label", { class: "wide" }, "gold", gold), select("verifier", verifiers, request.verifier, (verifier) => change({ verifier })), start, stop),
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
  // Send a request and show its completions as they are sampled; returns the state at the end.
  async function sampleFrom(answers, values, { signal }) {
    let state = "done";
    const onEvent = (event) => {
      if (event.error) state = "error";
      answers.take(event);
      answers.setStatus(event.error ?? (event.loading ? `loading ${event.loading} …` : "sampling …"));
    };
    try {
      const response = await fetch("/chat", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values), signal });
      if (!response.ok) throw new Error((await response.json()).error);
      await readEvents(response, onEvent);
      if (state === "done") answers.setStatus("done");
    } catch (error) {
      state = error.name === "AbortError" ? "stopped" : "error";
      answers.setStatus(state === "stopped" ? "stopped" : error.message);
    }
    return state;
  }
  // Ask the model, and the other one beside it.
  async function sample() {
    controller?.abort();
    const own = controller = new AbortController(), values = formValues();
    const requests = [values, ...(request.other ? [{ ...values, model: request.other, step: request.otherStep }] : [])];
    const sides = requests.map((one) => [new Answers(modelName(one.model, one.step, steps), (begin) => fill({ begin })), one]);
    put(results, sides.map(([answers]) => answers.box));
    start.disabled = true; stop.disabled = false;
    setStatus("running", "request sent");
    const states = await Promise.all(sides.map(([answers, one]) => sampleFrom(answers, one, own)));
    if (own !== controller) return;
    const state = ["error", "stopped"].find((one) => states.includes(one)) ?? "done";
    setStatus(state, state);
    start.disabled = false; stop.disabled = true;
  }
  put(root, el("h1", {}, "Chat"), note, card(null, form, picker), status, results);
  drawForm();
  return { close: () => controller?.abort() };
}
