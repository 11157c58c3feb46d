// The overview: charts of the last hour, memory, connections, what grows, what is blocked.

import { get } from "./api.js";
import { Chart, rates, roundedOctets, setSpark, spark } from "./charts.js";
import { count, counted, duration, el, facts, few, octets, queueHref, queueLink, rate, replace, short, write } from "./elements.js";
import { Table } from "./tables.js";

const SPANS = [[60, "1 min"], [600, "10 min"], [3600, "1 h"]];

export class Overview {
  title = "Overview";
  span = 60;

  constructor() {
    this.flow = new Chart("Messages each second", ["in", "out"], rate);
    this.depth = new Chart("Messages held", ["held", "unacknowledged"], count);
    this.memory = new Chart("Memory of messages", ["used"], octets, roundedOctets);
    this.buttons = SPANS.map(([span, name]) => el("button", { type: "button", text: name, "aria-pressed": String(span === 60), onclick: () => this.choose(span) }));
    this.sampled = el("p", { class: "note" });
    this.blocked = el("div", { "aria-live": "polite" });
    this.meter = el("meter", { min: 0, "aria-label": "memory of messages against the watermark" });
    this.memoryWords = el("p", { class: "note" });
    this.totals = el("div");
    this.protocols = new Table("Connections by protocol", [
      { title: "Protocol", set: (cell, [name]) => write(cell, name) },
      { title: "Connections", number: true, set: (cell, [, each]) => write(cell, count(each.connections)) },
      { title: "Channels", number: true, set: (cell, [, each]) => write(cell, count(each.channels)) },
      { title: "Unsettled", number: true, set: (cell, [, each]) => write(cell, count(each.unsettled)) },
    ], "No connection is open.");
    this.growing = new Table("Queues that grow fastest", [
      { title: "Queue", kind: "name", make: () => queueLink("", ""), set: linked },
      { title: "Grows by", number: true, set: (cell, each) => write(cell, rate(each.growth)) },
      { title: "Messages", number: true, set: (cell, each) => write(cell, count(each.depth)) },
      { title: "Depth", make: spark, set: (cell, each) => setSpark(cell.firstElementChild, each.depths) },
    ], "No queue grows.");
    const card = (name, ...children) => el("section", { class: "card", "aria-label": name }, el("h3", { text: name }), ...children);
    this.element = el("div", {},
      el("h2", { text: "Overview" }),
      this.blocked,
      el("div", { class: "bar", role: "group", "aria-label": "Time that the charts show" }, ...this.buttons, this.sampled),
      el("div", { class: "cards" }, 
        el("section", { class: "card" }, this.flow.element),
        el("section", { class: "card" }, this.depth.element),
        el("section", { class: "card" }, this.memory.element, this.meter, this.memoryWords)),
      el("div", { class: "cards" },
        card("Totals", this.totals),
        card("Connections by protocol", this.protocols.element),
        card("Queues that grow fastest", this.growing.element)));
  }

  choose(span) {
    this.span = span;
    SPANS.forEach(([each], place) => this.buttons[place].setAttribute("aria-pressed", String(each === span)));
    this.charts().catch(() => {});
  }

  async charts() {
    const span = this.span;
    const found = await get("amqp10/history", { span });
    if (span !== this.span) return;
    this.flow.set(span, found.age, [rates(found.age, found.arrived), rates(found.age, found.delivered)]);
    this.depth.set(span, found.age, [found.depth, found.unacked]);
    this.memory.set(span, found.age, [found.octets]);
  }

  async refresh() {
    const [found] = await Promise.all([get("amqp10/overview"), this.charts()]);
    const { container, messages, queues } = found;
    this.meter.max = container.memory_limit ?? Math.max(1, container.octets);
    this.meter.value = container.octets;
    if (container.memory_limit !== null) { this.meter.high = container.memory_limit * 0.9; this.meter.optimum = 0; }
    write(this.memoryWords, container.memory_limit === null
      ? `${octets(container.octets)} of messages; there is no watermark.`
      : `${octets(container.octets)} of messages; the watermark is ${octets(container.memory_limit)} (${few(100 * container.octets / container.memory_limit)} %).`);
    const dead = Object.entries(messages.dead_letters).filter(([, number]) => number);
    replace(this.totals, facts([
      ["Queues", `${count(queues.queues)}, with ${counted(queues.consumers, "consumer")}`],
      ["Topics", `${count(found.topics)}, with ${counted(found.subscriptions, "subscription")}`],
      ["Exchanges", count(found.exchanges)],
      ["Messages", `${count(queues.ready)} ready, ${count(queues.unacked)} unacknowledged, ${count(queues.delayed)} delayed`],
      ["Oldest message", queues.ready ? duration(queues.oldest) : "\u2013"],
      ["In and out so far", `${count(messages.arrived)} and ${count(messages.delivered)}`],
      ["Dead letters", dead.length ? dead.map(([reason, number]) => `${count(number)} ${reason}`).join(", ") : "none"],
      ["Without a queue", count(messages.unroutable)],
      ["Store", container.store ? `${container.store.description}, ${octets(container.store.octets)}` : "none"],
    ]));
    this.protocols.set(Object.entries(found.protocols));
    this.growing.set(found.growing);
    write(this.sampled, sampled(found.sampled));
    replace(this.blocked, ...reasons(found));
  }
}

function linked(cell, each) {
  const link = cell.firstElementChild;
  link.setAttribute("href", queueHref(each.address));
  link.title = short(each.name, 300);
  write(link, short(each.name, 120));
}

function sampled({ step, queues, most_queues: most }) {
  const depths = queues > most ? `the depths of ${count(most)} of ${count(queues)} queues` : "the depths of all queues";
  return `The server samples the totals every ${duration(step)} and ${depths} every 10 s, while it serves HTTP.`;
}

/** What is blocked, and why: a sentence for each. */
function reasons({ container, full }) {
  const found = [];
  const blocked = (text, ...more) => found.push(el("p", { class: "blocked" }, text, ...more));
  if (container.throttled) blocked(`All publishers wait: messages take ${octets(container.octets)}, and the watermark is ${octets(container.memory_limit)}. They go on when less than 90 % of it is in use.`);
  if (container.finishing) blocked("The container is finishing, and takes no new work.");
  if (container.store?.failures) blocked(`The store has failed ${count(container.store.failures)} times: see the log of the container.`);
  for (const address of full) blocked("Publishers of a queue wait, because it is full: ", queueLink(address));
  for (const [quota, number] of Object.entries(container.refused)) if (number) blocked(`Refused because of the quota ${quota}: ${count(number)} times so far.`);
  return found.length ? found : [el("p", { class: "calm", text: "Nothing is blocked." })];
}
