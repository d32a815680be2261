// The difference of two rollouts, word by word, with a choice of both sides.
import { card, el, fault, latestOnly, put, select } from "./core.js";
import { differenceSide } from "./text.js";

// A card with the difference of two rollouts of a run. `options` are those of both choices, `pair` = {a, b} names the first
// two. Returns {card, draw}: `draw()` asks for the difference and shows it, or why it cannot be shown.
export function differenceCard({ title, run, options, pair, page }) {
  const askDifference = latestOnly(), diff = el("div", { class: "grid two", data: { diff: "" } });
  async function draw() {
    const sides = { ...pair };
    try {
      const reply = await askDifference("difference", { run, ...sides });
      if (!reply) return;
      const { pieces } = reply, note = pieces.every(([kind]) => kind === "same") ? " (the same text)" : "";
      put(diff, ["a", "b"].map((side) =>
        el("div", {}, el("small", {}, `${side.toUpperCase()}: ${sides[side]}${note}`), differenceSide(pieces, side))));
    } catch (error) {
      put(diff, fault(error));
    }
  }
  const pairSelect = (side) => select(side.toUpperCase(), options, pair[side], (name) => {
    pair[side] = name; page.set({ [side]: name }); draw();
  });
  return { card: card(title, el("div", { class: "bar-row" }, pairSelect("a"), pairSelect("b")), diff), draw };
}
