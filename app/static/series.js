// The curves of a run as lines of charts.
import { smooth } from "./chart.js";
import { firstIndex, isMissing } from "./core.js";

// A function from a step to x on the axis: the step, or the tokens or minutes before it. Step n is the model after n training
// steps: its validation, and the rollouts that it samples. Of a long run not every step has a line here: the last one counts.
function axisOf(metrics, axis) {
  const total = { tokens: (line) => line.num_tokens ?? 0, minutes: (line) => line.total_seconds / 60 }[axis];
  if (!total) return (n) => n;
  return (n) => {
    const linesBefore = firstIndex(metrics.length, (i) => metrics[i].step >= n);
    return linesBefore ? total(metrics[linesBefore - 1]) : 0;
  };
}

// Functions that make lines of charts from the reply to the query `overview`. `view`: {axis, smoothing}.
export function seriesOf(data, view) {
  const x = axisOf(data.metrics, view.axis);
  const fromSteps = (name, rows, key, options) => {
    const points = rows.filter((row) => !isMissing(row[key])).map((row) => ({ x: x(row.step), y: row[key], step: row.step }));
    return { name, points: smooth(points, view.smoothing), ...options };
  };
  return {
    metric: (name, key, options = {}) => fromSteps(name, data.metrics, key, options),  // of metrics.jsonl
    rollouts: (name, key, options = {}) => fromSteps(name, data.steps, key, options),  // of the index of rollouts
    validation(name, read, options = {}) {
      const estimates = data.validations.map((one) => [one, read(one)]).filter(([, estimate]) => estimate);
      const points = estimates.map(([{ step }, { value, low, high }]) => ({ x: x(step), y: value, low, high, step }));
      return { name, points, ...options };
    },
    normal(key, name = "normal") {  // the band of the reference, up to the run's last step
      const band = data.reference?.bands[key], last = data.metrics[data.metrics.length - 1]?.step ?? -1;
      const steps = band ? band.mean.slice(0, last + 1).map((_, step) => step) : [];
      const points = steps.map((step) => ({ x: x(step), y: band.mean[step], low: band.low[step], high: band.high[step], step }));
      return { name, dashed: true, thin: true, colour: "--muted", points };
    },
    baseline(name, key) {  // the value of step 0 as a horizontal line
      const first = data.metrics[0], last = data.metrics[data.metrics.length - 1];
      const points = first?.step === 0 && first[key] !== undefined ? [first, last].map(({ step }) => ({ x: x(step), y: first[key], step })) : [];
      return { name, dashed: true, colour: "--muted", points };
    },
  };
}
