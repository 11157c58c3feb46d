// Charts of a fixed number of points, as SVG.

import { svg, el, write } from "./elements.js";

const WIDTH = 600, HEIGHT = 150;

/** A chart of up to two lines. `round` returns the top of its scale for the highest value. `set` shows new points: `ages` in seconds, and values or null for each line. */
export class Chart {
  constructor(title, names, show, round = rounded) {
    this.round = round;
    this.names = names;
    this.show = show;
    this.lines = names.map((_, place) => svg("path", { class: `line s${place}` }));
    this.label = svg("title");
    this.limit = svg("path", { class: "limit" });
    this.picture = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      this.label, this.limit, ...this.lines);
    this.words = names.map(() => document.createTextNode(""));
    this.element = el("figure", { class: "figure" }, el("h3", { text: title }), this.frame(),
      el("figcaption", { class: "legend" }, ...names.map((_, place) =>
        el("span", {}, svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("path", { class: `line s${place}`, d: "M0 4H22" })), this.words[place]))));
    this.title = title;
  }

  /** The picture is stretched to its place, so its text stands beside it. */
  frame() {
    this.scale = el("div", { class: "scale", "aria-hidden": "true" }, ...(this.marks = [el("span"), el("span"), el("span")]));
    this.times = el("div", { class: "times", "aria-hidden": "true" }, (this.from = el("span")), el("span", { text: "now" }));
    return el("div", { class: "plot" }, this.scale, this.picture, this.times);
  }

  set(span, ages, series, limit = null) {
    const highest = this.round(Math.max(limit ?? 0, 1, ...series.flat().filter((value) => value !== null)));
    const x = (age) => (WIDTH * (1 - Math.min(1, age / span))).toFixed(1);
    const y = (value) => (HEIGHT - 1 - (HEIGHT - 2) * (value / highest)).toFixed(1);
    series.forEach((values, place) => {
      let path = "", down = false;
      values.forEach((value, at) => {
        if (value === null || ages[at] > span * 1.05) { down = false; return; }
        path += `${down ? "L" : "M"}${x(ages[at])} ${y(value)}`;
        down = true;
      });
      this.lines[place].setAttribute("d", path);
      const known = values.filter((value) => value !== null);
      const now = known.length ? known[known.length - 1] : 0;
      this.words[place].data = `${this.names[place]} ${this.show(now)}, highest ${this.show(Math.max(0, ...known))}`;
    });
    this.limit.setAttribute("d", limit === null ? "" : `M0 ${y(limit)}H${WIDTH}`);
    [highest, highest / 2, 0].forEach((value, place) => write(this.marks[place], this.show(value)));
    write(this.from, span < 120 ? `${span} s ago` : `${span / 60} min ago`);
    write(this.label, `${this.title}: ${this.words.map((word) => word.data).join("; ")}`);
  }
}

/** The next number that is easy to read: 1, 2 or 5 times a power of ten. */
export function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value * 0.9999);
}

/** The same for octets, in units of powers of 1024. */
export function roundedOctets(value) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log(value) / Math.log(1024)));
  const found = rounded(value / unit) * unit;
  return found >= 1000 * unit ? 1024 * unit : found;
}

/** The rates each second between totals; null where there is none. */
export function rates(ages, totals) {
  return totals.map((total, at) => {
    if (at === 0) return null;
    const seconds = ages[at - 1] - ages[at];
    return seconds > 0 ? Math.max(0, (total - totals[at - 1]) / seconds) : null;
  });
}

/** A small line without words, which the figures beside it make unnecessary. */
export function spark() {
  return svg("svg", { class: "spark", viewBox: "0 0 90 22", "aria-hidden": "true" }, svg("path", { class: "line s0" }));
}

export function setSpark(picture, values) {
  const highest = Math.max(1, ...values);
  const step = 88 / Math.max(1, values.length - 1);
  const path = values.length < 2 ? "" : "M" + values.map((value, at) => `${(1 + at * step).toFixed(1)} ${(20 - 18 * (value / highest)).toFixed(1)}`).join("L");
  picture.firstElementChild.setAttribute("d", path);
}
