// Cards that come in pages, with a button for the next page.
import { ask, el, empty, fault, latestOnly, put } from "./core.js";

export const PAGE_SIZE = 12;  // cards; the server's pages of examples and spans have as many

// `path` and `query()` are the request for a page, but for its offset; `cards(reply)` are the cards of a reply; `none` is
// shown where there are no cards.
export function gallery({ path, query, cards: cardsOf, none }) {
  const cards = el("div", { class: "gallery", data: { gallery: "" } }), more = el("div", { class: "bar-row" });
  const askLatest = latestOnly();
  let offset = 0;  // of the page shown last

  // Show a reply: the first page, or one more below those shown.
  function draw(reply) {
    const page = cardsOf(reply);
    if (offset) cards.append(...page);
    else put(cards, page.length ? page : empty(none));
    put(more, page.length === PAGE_SIZE ? el("button", { onclick: () => load(offset + PAGE_SIZE) }, "more") : null);
  }
  // Fetch the page from `first` on and show it; where that fails, say why and offer to try again.
  async function load(first = 0) {
    put(more);  // a second click on "more" would ask for the page after the next
    try {
      const reply = await askLatest(path, { ...query(), ...(first ? { offset: first } : {}) });
      if (!reply) return;  // a later call has replaced this one
      offset = first;
      draw(reply);
    } catch (error) {
      put(more, fault(error), el("button", { onclick: () => load(first) }, "try again"));
    }
  }
  return { nodes: [cards, more], draw, load, hasMorePages: () => offset > 0 };
}

// The gallery of a page of a run whose parameter `field` chooses the cards, and the page's news. `draw(data, choice, choose)`
// draws the rest of the page from the last reply.
export async function chosenGallery(page, { path, field, cards: cardsOf, none, draw: drawPage }) {
  let choice = page.params[field] ?? "";
  const query = () => ({ run: page.params.run, [field]: choice });
  let data = await ask(path, query());
  const cards = gallery({ path, query, none, cards: (reply) => cardsOf(data = reply) });
  const draw = () => drawPage(data, choice, choose);
  function choose(value) {
    choice = value;
    page.set({ [field]: choice });
    draw();
    return cards.load();
  }
  // Draw what is new; returns whether there is something.
  async function live() {
    const choiceBefore = choice, news = await ask(path, { run: page.params.run, limit: 0 });
    if (["num_analyzed", "num_steps"].every((name) => news[name] === data[name])) return false;
    const reply = await ask(path, query());
    if (choice !== choiceBefore) return false;  // the cards of another choice are on their way
    data = reply;
    draw();
    if (!cards.hasMorePages()) cards.draw(data);
    return true;
  }
  return { nodes: cards.nodes, live, start: () => { draw(); cards.draw(data); } };
}
