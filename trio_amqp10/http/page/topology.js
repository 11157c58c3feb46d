// Topics and exchanges: the picture, the route of a key, and tables.

import { get, post } from "./api.js";
import { count, el, queueLink, short, write } from "./elements.js";
import { Picture } from "./picture.js";
import { PagedTable, Table } from "./tables.js";

export class Topology {
  title = "Topics and exchanges";

  constructor() {
    this.picture = new Picture();
    this.words = el("p", { class: "note", role: "status" });
    this.zooms = el("div", { class: "bar" },
      el("button", { type: "button", text: "Larger", onclick: () => this.picture.zoom(0.8) }),
      el("button", { type: "button", text: "Smaller", onclick: () => this.picture.zoom(1.25) }),
      el("button", { type: "button", text: "All", onclick: () => this.picture.all() }), this.words);
    this.exchange = el("select", { name: "exchange" });
    this.key = el("input", { name: "key", autocomplete: "off" });
    this.headers = el("input", { name: "headers", autocomplete: "off", placeholder: '{"format": "pdf"}' });
    this.route = el("p", { role: "status" });
    const form = el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); this.tryRoute(); } },
      el("label", {}, "Exchange", this.exchange), el("label", {}, "Routing key", this.key), el("label", {}, "Headers, as JSON", this.headers),
      el("button", { type: "submit", text: "Where would it go?" }));
    this.topics = new Table("Topics", [
      { title: "Topic", kind: "name", set: (cell, each) => write(cell, short(each.address, 120)) },
      { title: "Subscriptions", number: true, set: (cell, each) => write(cell, count(each.subscriptions)) },
      { title: "Waiting messages", number: true, set: (cell, each) => write(cell, count(each.depth)) },
      { title: "In so far", number: true, set: (cell, each) => write(cell, count(each.arrived)) },
    ], "There is no topic.");
    this.exchanges = new Table("Exchanges", [
      { title: "Exchange", kind: "name", set: (cell, each) => write(cell, short(each.name || "(default)", 120)) },
      { title: "Type", set: (cell, each) => write(cell, each.type) },
      { title: "Bindings", number: true, set: (cell, each) => write(cell, count(each.bindings)) },
      { title: "In so far", number: true, set: (cell, each) => write(cell, count(each.arrived)) },
      { title: "Without a queue", number: true, set: (cell, each) => write(cell, count(each.unroutable)) },
    ], "There is no exchange.");
    this.bindings = new PagedTable("Bindings", [
      { title: "From the exchange", kind: "name", sort: "source", set: (cell, each) => write(cell, short(each.source, 120)) },
      { title: "Key", kind: "name", sort: "key", set: (cell, each) => write(cell, short(each.key, 120)) },
      { title: "To", kind: "name", sort: "destination", set: (cell, each) => write(cell, `${each.destination_kind} ${short(each.destination, 120)}`) },
      { title: "Arguments", kind: "long", hidden: true, set: (cell, each) => write(cell, Object.keys(each.arguments).length ? short(JSON.stringify(each.arguments), 200) : "\u2013") },
    ], "There is no binding.", "amqp10/bindings", { noun: "binding" });
    const card = (name, ...children) => el("section", { class: "card wide", "aria-label": name }, el("h3", { text: name }), ...children);
    this.element = el("div", {}, el("h2", { text: this.title }),
      el("div", { class: "cards" },
        card("Where would a message go?", form, this.route),
        card("What is bound to what", this.zooms, this.picture.element),
        card("Topics", this.topics.element), card("Exchanges", this.exchanges.element), card("Bindings", this.bindings.element)));
  }

  async refresh() {
    const [found] = await Promise.all([get("amqp10/topology"), this.bindings.refresh()]);
    this.topics.set(found.topics);
    this.exchanges.set(found.exchanges);
    const names = found.exchanges.map((each) => each.name);
    if (names.join("\n") !== Array.from(this.exchange.options, (each) => each.value).join("\n")) {
      const chosen = this.exchange.value;
      this.exchange.replaceChildren(...names.map((name) => el("option", { value: name, text: short(name || "(default)", 60) })));
      if (names.includes(chosen)) this.exchange.value = chosen;
    }
    const text = JSON.stringify([found.bindings, found.topics.map((each) => each.address), found.subscriptions.map((each) => [each.topic, each.name, each.container_id]), names]);
    if (text === this.before) return;
    this.before = text;
    this.graph = graph(found);
    this.drawn(found);
  }

  drawn(found) {
    const { nodes, edges } = this.graph;
    const fits = nodes.length > 0 && nodes.length <= found.most_nodes && !found.more;
    this.picture.element.toggleAttribute("hidden", !fits);
    for (const each of this.zooms.querySelectorAll("button")) each.hidden = !fits;
    if (fits) this.picture.draw(nodes, edges);
    write(this.words, fits ? `${count(nodes.length)} nodes, ${count(edges.length)} bindings and subscriptions. Exchanges without a binding are left out.`
      : nodes.length ? `More than ${count(found.most_nodes)} nodes are too many for a picture: see the table of bindings.` : "Nothing is bound.");
  }

  async tryRoute() {
    try {
      const headers = this.headers.value ? JSON.parse(this.headers.value) : {};
      const found = await post("route", { exchange: this.exchange.value, key: this.key.value, headers });
      this.route.className = found.length ? "calm" : "blocked";
      const links = found.flatMap((each, place) => [place ? ", " : "", queueLink(each.address, each.name)]);
      this.route.replaceChildren(found.length ? `It would go to ${count(found.length)} ${found.length === 1 ? "queue" : "queues"}: ` : "It would reach no queue that you may see.", ...links);
      this.picture.reach(new Set(found.map((each) => `queue ${each.name}`)));
    } catch (fault) {
      this.route.className = "error";
      this.route.textContent = fault instanceof SyntaxError ? `The headers are no JSON: ${fault.message}` : fault.message;
    }
  }
}

/** What leads somewhere, and where it leads. */
function graph(found) {
  const nodes = new Map();
  const node = (kind, name, label = name) => {
    const id = `${kind} ${name}`;
    if (!nodes.has(id)) nodes.set(id, { id, kind, name, label });
    return id;
  };
  const edges = found.bindings.map((each) => ({ from: node("exchange", each.source), to: node(each.destination_kind, each.destination), key: each.key }));
  for (const each of found.topics) node("topic", each.address);
  for (const each of found.subscriptions) {
    const owner = [each.user, each.container_id].filter(Boolean).join(" ");
    edges.push({ from: node("topic", each.topic), to: node("subscription", `${each.topic} ${owner} ${each.name}`, each.name), key: each.filtered ? "filtered" : "" });
  }
  return { nodes: [...nodes.values()], edges };
}
