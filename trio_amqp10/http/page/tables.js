// Tables: one of a given list, and one that the server sorts, filters and divides into pages.

import { get } from "./api.js";
import { count, counted, el, sync } from "./elements.js";

const SIZE = 50;

/**
 * A table of a list. `columns` are `{title, make, set, number, hidden}`: `make` returns what is in a cell, `set` shows a thing in it.
 */
export class Table {
  constructor(label, columns, empty) {
    this.columns = columns;
    this.body = el("tbody");
    this.head = el("tr", {}, ...columns.map((each) => this.heading(each)));
    this.nothing = el("p", { class: "empty", text: empty, hidden: true });
    this.element = el("div", {}, el("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": label }, el("table", { "aria-label": label }, el("thead", {}, this.head), this.body)), this.nothing);
  }

  heading(column) {
    return el("th", { scope: "col", class: style(column), text: column.title });
  }

  set(things) {
    this.nothing.hidden = things.length > 0;
    sync(this.body, things, () => this.row(), (row, thing) => this.columns.forEach((column, place) => column.set(row.children[place], thing)));
  }

  row() {
    return el("tr", {}, ...this.columns.map((each) => el("td", { class: style(each) }, each.make ? each.make() : null)));
  }
}

const style = (column) => [column.number ? "number" : "", column.kind ?? "", column.hidden ? "small-hidden" : ""].join(" ").trim() || null;

/** A table of a list of the server; `column.sort` is what the server sorts by. */
export class PagedTable extends Table {
  constructor(label, columns, empty, path, { sort = null, reverse = false, noun = "thing" } = {}) {
    super(label, columns, empty);
    Object.assign(this, { path, sort, reverse, noun, page: 1 });
    this.filter = el("input", { type: "search", autocomplete: "off", placeholder: "part of a name", oninput: () => this.later() });
    this.words = el("span", { role: "status" });
    this.back = el("button", { type: "button", text: "Previous page", onclick: () => this.turn(-1) });
    this.next = el("button", { type: "button", text: "Next page", onclick: () => this.turn(1) });
    this.fault = el("p", { class: "error", hidden: true });
    this.element.prepend(el("div", { class: "bar" }, el("label", { class: "grow" }, "Filter", this.filter)));
    this.element.append(this.fault, el("div", { class: "pages" }, this.back, this.words, this.next));
    this.mark();
  }

  heading(column) {
    if (!column.sort) return super.heading(column);
    return el("th", { scope: "col", class: style(column) }, el("button", { type: "button", text: column.title, onclick: () => this.order(column) }));
  }

  order(column) {
    this.reverse = this.sort === column.sort ? !this.reverse : Boolean(column.number);
    this.sort = column.sort;
    this.page = 1;
    this.mark();
    this.now();
  }

  mark() {
    this.columns.forEach((column, place) => {
      const heading = this.head.children[place];
      if (column.sort && column.sort === this.sort) heading.setAttribute("aria-sort", this.reverse ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
  }

  turn(step) {
    this.page += step;
    this.now();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.page = 1; this.now(); }, 250);
  }

  now() {
    this.refresh().catch((fault) => { this.fault.textContent = fault.message; this.fault.hidden = false; });
  }

  async refresh() {
    const asked = (this.asked = {});
    const query = { page: this.page, page_size: SIZE, name: this.filter.value, sort: this.sort, sort_reverse: this.reverse };
    let found;
    try {
      found = await get(this.path, query);
    } catch (fault) {
      if (fault.status !== 400 || this.page === 1) throw fault;
      this.page = 1;  // The list has become shorter than this page.
      found = await get(this.path, { ...query, page: 1 });
    }
    if (this.asked !== asked) return;  // Something else was asked for meanwhile.
    this.fault.hidden = true;
    this.set(found.items);
    this.back.disabled = found.page <= 1;
    this.next.disabled = found.page >= found.page_count;
    const of = found.filtered_count === found.total_count ? "" : `${count(found.filtered_count)} of `;
    this.words.textContent = `${of}${counted(found.total_count, this.noun)}, page ${count(found.page)} of ${count(found.page_count)}`;
  }
}
