// Cards that come in pages, with a button for the next page.
import { el, empty, fault, put } from "./core.js";

const PAGE_SIZE = 12;  // cards; the server's pages have as many

// `ask(offset)` requests the cards from `offset` on; it returns undefined where a later call has replaced it.
// `none` is shown where there are no cards.
export function gallery({ ask, none }) {
  const cards = el("div", { class: "gallery", data: { gallery: "" } }), more = el("div", { class: "bar-row" });
  let offset = 0;  // of the page shown last

  // Show the first page, or add a page to those shown.
  function draw(page) {
    if (offset) cards.append(...page);
    else put(cards, page.length ? page : empty(none));
    put(more, page.length === PAGE_SIZE ? el("button", { onclick: () => load(offset + PAGE_SIZE) }, "more") : null);
  }
  // Fetch the page from `first` on and show it; where that fails, say why and offer to try again.
  async function load(first = 0) {
    put(more);  // a second click on "more" would ask for the page after the next
    try {
      const page = await ask(first);
      if (!page) return;
      offset = first;
      draw(page);
    } catch (error) {
      put(more, fault(error), el("button", { onclick: () => load(first) }, "try again"));
    }
  }
  return { nodes: [cards, more], draw, load, hasMorePages: () => offset > 0 };
}
