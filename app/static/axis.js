// Ticks of an axis, 1, 2 or 5 times a power of ten apart, and labels that tell every tick from its neighbours.

const exponent = (value) => Math.floor(Math.log10(Math.abs(value)) + 1e-9);
const UNITS = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

// About `count` ticks in [low, high]: [{at, text}]. isWhole: whole numbers alone. isShare: labels in percent.
// isLog: low and high are above 0 and drawn by their logarithms.
export function ticksOf(low, high, count, { isWhole = false, isShare = false, isLog = false } = {}) {
  if (!(high - low > Math.abs(high) * 1e-12)) return tickLabels([high], 0, isShare);
  if (isLog) {
    for (const multiples of [[1], [1, 2, 5]]) {
      const values = powers(low, high, multiples);
      if (values.length < 3) continue;
      const every = Math.ceil(values.length / (count + 2));
      return values.filter((_, i) => i % every === 0).flatMap((value) => tickLabels([value], 10 ** exponent(value), isShare));
    }
  }
  const distance = (high - low) / Math.max(1, count), unit = 10 ** exponent(distance);
  const nearest = unit * (distance < unit * Math.SQRT2 ? 1 : distance < unit * Math.sqrt(10) ? 2 : distance < unit * Math.sqrt(50) ? 5 : 10);
  let values = [], step = nearest;
  for (const multiple of [10, 5, 2, 1, 0.5].filter((multiple) => multiple * unit <= nearest * (1 + 1e-9))) {
    step = Math.max(multiple * unit, isWhole ? 1 : 0);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    values = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
    if (values.length > 1) break;  // one tick alone says nothing of the scale
  }
  return tickLabels(values, step, isShare);
}

// The multiples of the powers of ten in [low, high].
function powers(low, high, multiples) {
  const values = [];
  for (let e = exponent(low); e <= exponent(high); e += 1) values.push(...multiples.map((multiple) => multiple * 10 ** e));
  return values.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
}

// Labels with as many decimals as the step needs, in one unit for all: 0.2 %, 1.2M, 2.5e-6.
function tickLabels(values, step, isShare) {
  const most = Math.max(...values.map(Math.abs), 0);
  let scale = isShare ? 0.01 : 1, suffix = isShare ? " %" : "";
  if (!isShare && most >= 1e5) [scale, suffix] = UNITS.find(([unit]) => most >= unit);
  else if (!isShare && most > 0 && most < 1e-3) [scale, suffix] = [10 ** exponent(most), `e${exponent(most)}`];
  const digits = step ? Math.min(12, Math.max(0, -exponent(step / scale))) : 2;
  return values.map((at) => {
    const text = (at / scale).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return { at, text: at === 0 && !isShare ? "0" : text + suffix };
  });
}
