// The picture of what is bound to what: sources at the left, queues at the right. It can be moved and made larger.

import { short, svg } from "./elements.js";

const BOX = 180, GAP = 150, ROW = 34, HIGH = 24;
const SMALLEST = 1.1;

/** The nodes in columns: one that others lead to stands at the right of these. */
function columns(nodes, edges) {
  const level = new Map(nodes.map((node) => [node.id, 0]));
  for (let round = 0; round < 6; round += 1) {
    let moved = false;
    for (const { from, to } of edges) {
      if (level.get(to) <= level.get(from) && level.get(from) < 5) { level.set(to, level.get(from) + 1); moved = true; }
    }
    if (!moved) break;
  }
  const last = Math.max(0, ...level.values());
  const found = [];
  for (const node of nodes) {
    const place = node.kind === "queue" || node.kind === "subscription" ? Math.max(last, 1) : Math.min(level.get(node.id), Math.max(last - 1, 0));
    (found[place] ??= []).push(node);
  }
  return found.filter(Boolean);
}

export class Picture {
  constructor() {
    this.inner = svg("g");
    this.element = svg("svg", { class: "picture", role: "img", tabindex: "0", "aria-label": "Picture of exchanges, topics and queues. The table below has the same in words. Plus and minus change its size, arrows move it." }, this.inner);
    this.view = [0, 0, 800, 400];
    this.element.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event.deltaY < 0 ? 0.87 : 1.15); }, { passive: false });
    this.element.addEventListener("pointerdown", (event) => { this.held = [event.clientX, event.clientY]; this.element.setPointerCapture(event.pointerId); });
    this.element.addEventListener("pointermove", (event) => this.drag(event));
    this.element.addEventListener("pointerup", () => { this.held = null; });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const [, , width, height] = this.view;
    const moves = { ArrowLeft: [-width / 10, 0], ArrowRight: [width / 10, 0], ArrowUp: [0, -height / 10], ArrowDown: [0, height / 10] };
    if (event.key === "+" || event.key === "=") this.zoom(0.8);
    else if (event.key === "-") this.zoom(1.25);
    else if (moves[event.key]) this.look(this.view[0] + moves[event.key][0], this.view[1] + moves[event.key][1], width, height);
    else return;
    event.preventDefault();
  }

  drag(event) {
    if (!this.held) return;
    const scale = this.view[2] / this.element.clientWidth;
    const [x, y] = this.held;
    this.held = [event.clientX, event.clientY];
    this.look(this.view[0] - (event.clientX - x) * scale, this.view[1] - (event.clientY - y) * scale, this.view[2], this.view[3]);
  }

  zoom(factor) {
    const [x, y, width, height] = this.view;
    const wide = Math.min(20000, Math.max(150, width * factor));
    const high = height * wide / width;
    this.look(x + (width - wide) / 2, y + (height - high) / 2, wide, high);
  }

  look(...view) {
    this.view = view;
    this.element.setAttribute("viewBox", view.map((each) => each.toFixed(1)).join(" "));
  }

  /** Draw nodes `{id, kind, name}` and edges `{from, to, key}`. */
  draw(nodes, edges) {
    this.places = new Map();
    this.boxes = new Map();
    const stood = columns(nodes, edges);
    const tallest = Math.max(1, ...stood.map((each) => each.length));
    stood.forEach((column, x) => column.forEach((node, y) => {
      this.places.set(node.id, [x * (BOX + GAP), (y + (tallest - column.length) / 2) * ROW]);
    }));
    const lines = edges.flatMap(({ from, to, key }) => this.edge(this.places.get(from), this.places.get(to), key));
    const boxes = nodes.map((node) => this.box(node, this.places.get(node.id)));
    this.inner.replaceChildren(...lines, ...boxes);
    this.whole = [-20, -20, Math.max(BOX, stood.length * (BOX + GAP) - GAP) + 40, tallest * ROW + 30];
    this.all();
    const { clientWidth: wide, clientHeight: high } = this.element;
    if (wide && this.whole[2] > wide * SMALLEST) {  // Too small to be read: begin with the sources, at the left.
      const shown = wide * SMALLEST;
      this.look(-20, this.whole[1] + this.whole[3] / 2 - shown * high / wide / 2, shown, shown * high / wide);
    }
  }

  /** Show the whole picture. */
  all() {
    this.look(...this.whole);
  }

  box(node, [x, y]) {
    const made = svg("g", { class: node.kind, transform: `translate(${x} ${y})` },
      svg("title", { text: `${node.kind} ${short(node.name, 300)}` }),
      svg("rect", { width: BOX, height: HIGH, rx: node.kind === "queue" ? 2 : 12 }),
      svg("text", { x: 8, y: 16, text: short(node.label ?? node.name, 24) }));
    this.boxes.set(node.id, made);
    return made;
  }

  edge([x, y], [u, v], key) {
    const from = x + BOX, to = u, a = y + HIGH / 2, b = v + HIGH / 2;
    const line = svg("path", { class: "edge", d: `M${from} ${a}C${from + GAP / 2} ${a} ${to - GAP / 2} ${b} ${to} ${b}` });
    if (!key) return [line];
    return [line, svg("text", { class: "key", x: to - 6, y: b - 4, "text-anchor": "end", text: short(key, 20) })];
  }

  reach(ids) {
    for (const [id, box] of this.boxes ?? []) box.classList.toggle("reached", ids.has(id));
  }
}
