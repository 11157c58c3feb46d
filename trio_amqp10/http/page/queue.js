// One queue: its figures, rules and consumers, and what can be done with it.

import { post } from "./api.js";
import { Chart, rates } from "./charts.js";
import { count, counted, duration, el, facts, octets, rate, replace, short, write } from "./elements.js";
import { question } from "./dialogs.js";
import { Messages } from "./messages.js";
import { Table } from "./tables.js";

const SPAN = 120;
const POINTS = 121;

export class Queue {
  constructor(query) {
    this.address = query.get("address") ?? "";
    this.title = short(this.address, 60);
    this.points = [];
    this.flow = new Chart("Messages each second, while this page is open", ["in", "out"], rate);
    this.depth = new Chart("Messages held", ["held", "unacknowledged"], count);
    this.figures = el("div");
    this.rules = el("div");
    this.fault = el("p", { class: "error", hidden: true });
    this.consumers = new Table("Consumers", [
      { title: "Link", kind: "name", set: (cell, each) => write(cell, short(each.name, 120)) },
      { title: "Peer", kind: "name", set: (cell, each) => write(cell, short([each.user, each.container_id].filter(Boolean).join(" \u00b7 "), 120)) },
      { title: "Connection", number: true, make: () => el("a"), set: (cell, each) => {
        cell.firstElementChild.setAttribute("href", `#/connection?number=${each.connection}`);
        write(cell.firstElementChild, `#${each.connection}`);
      } },
      { title: "Protocol", set: (cell, each) => write(cell, each.protocol) },
      { title: "Credit", number: true, set: (cell, each) => write(cell, each.credit === null ? "no limit" : count(each.credit)) },
      { title: "Unacked", number: true, set: (cell, each) => write(cell, count(each.unsettled)) },
      { title: "Messages", number: true, set: (cell, each) => write(cell, count(each.messages)) },
    ], "No consumer, or none that you may see.");
    this.messages = new Messages(this.address);
    const button = (text, act, danger = false) => el("button", { type: "button", text, class: danger ? "danger" : null, onclick: act });
    this.element = el("div", {},
      el("h2", { class: "long-name", text: this.address }),
      this.fault,
      el("div", { class: "bar", role: "group", "aria-label": "Operations" },
        button("Publish", () => this.publish()), button("Move", () => this.move()), button("Redrive", () => this.redrive()),
        button("Purge", () => this.purge(), true), button("Delete", () => this.remove(), true)),
      el("div", { class: "cards" },
        el("section", { class: "card", "aria-label": "Figures" }, el("h3", { text: "Figures" }), this.figures),
        el("section", { class: "card" }, this.depth.element),
        el("section", { class: "card" }, this.flow.element),
        el("section", { class: "card", "aria-label": "Rules" }, el("h3", { text: "Rules that are not those of a new queue" }), this.rules),
        el("section", { class: "card wide", "aria-label": "Consumers" }, el("h3", { text: "Consumers" }), this.consumers.element),
        this.messages.element));
  }

  async refresh() {
    let found;
    try {
      found = await post("queue", { address: this.address });
    } catch (fault) {
      if (fault.status !== 404) throw fault;
      this.fault.textContent = "There is no queue of this address, or you may not see it. It may be the address of a topic.";
      this.fault.hidden = false;
      return;
    }
    this.fault.hidden = true;
    this.found = found;
    this.draw(found);
    const dead = Object.entries(found.dead_letters).filter(([, number]) => number);
    replace(this.figures, facts([
      ["Messages", `${count(found.ready)} ready, ${count(found.unacked)} unacknowledged, ${count(found.delayed)} delayed`],
      ["Size", octets(found.octets)],
      ["Oldest message", duration(found.oldest)],
      ["In so far", `${count(found.arrived)}, ${count(found.refused)} refused`],
      ["Out so far", `${count(found.delivered)}, ${count(found.redelivered)} of them again`],
      ["Acknowledged", count(found.acknowledged)],
      ["Dead letters", dead.length ? dead.map(([reason, number]) => `${count(number)} ${reason}`).join(", ") : "none"],
      ["Publishers", count(found.senders)],
      ["Kind", [found.declared ? "declared" : "added", found.durable ? "durable" : "transient", found.exclusive ? "exclusive" : "", found.auto_delete ? "deleted when unused" : ""].filter(Boolean).join(", ")],
    ]));
    const rules = { ...found.rules, ...found.arguments };
    replace(this.rules, Object.keys(rules).length ? facts(Object.entries(rules).map(([name, value]) => [short(name, 60), typeof value === "object" ? JSON.stringify(value) : String(value)])) : el("p", { class: "empty", text: "None." }));
    this.consumers.set(found.consumer_list);
  }

  draw(found) {
    const now = performance.now() / 1000;
    this.points = [...this.points, { at: now, ...found, consumer_list: null, depths: null }].filter((each) => now - each.at <= SPAN).slice(-POINTS);
    const ages = this.points.map((each) => now - each.at);
    const of = (name) => this.points.map((each) => each[name]);
    this.flow.set(SPAN, ages, [rates(ages, of("arrived")), rates(ages, of("delivered"))]);
    const kept = found.depths.length;
    const older = ages.length ? ages[0] : 0;
    const early = found.depths.map((depth, place) => [(kept - place - 1) * 10, depth]).filter(([age]) => age > older);
    this.depth.set(300, [...early.map(([age]) => age), ...ages], [[...early.map(([, depth]) => depth), ...of("depth")], [...early.map(() => null), ...of("unacked")]]);
  }

  purge() {
    question("Purge the queue?", `${count(this.found?.ready)} ready and ${count(this.found?.delayed)} delayed messages of ${short(this.address, 200)} are deleted. This cannot be undone.`, "Purge",
      async () => `Deleted: ${counted((await post("purge", { address: this.address })).purged, "message")}.`, { danger: true });
  }

  remove() {
    question("Delete the queue?", `${short(this.address, 200)} and its ${counted(this.found?.depth ?? 0, "message")} are deleted. ${counted(this.found?.consumers ?? 0, "consumer")} will get no more of it. This cannot be undone.`, "Delete",
      async (given) => {
        await post("delete", { address: this.address, if_empty: given.empty, if_unused: given.unused });
        location.hash = "#/queues";
      },
      { danger: true, fields: [{ name: "empty", label: "only if no message is ready", kind: "check" }, { name: "unused", label: "only if it has no consumer", kind: "check" }] });
  }

  move() {
    question("Move messages?", `Ready messages of ${short(this.address, 200)} go to another address, each exactly once.`, "Move",
      async (given) => `Moved: ${counted((await post("move", { source: this.address, target: given.target, count: given.count ? Number(given.count) : null })).moved, "message")}.`,
      { fields: [{ name: "target", label: "To the address", needed: true }, { name: "count", label: "How many at most (empty: all that are ready)", kind: "number" }] });
  }

  redrive() {
    question("Send dead letters back?", `Messages of ${short(this.address, 200)} go back to the queues where they died, each exactly once. A message without a history stays.`, "Redrive",
      async (given) => {
        const done = await post("redrive", { address: this.address, count: given.count ? Number(given.count) : null, died_in: given.died_in || null });
        const moved = Object.entries(done.moved).map(([address, number]) => `${count(number)} to ${short(address)}`);
        return `${moved.length ? moved.join(", ") : "No message went back"}; ${count(done.left)} are left.`;
      },
      { fields: [{ name: "died_in", label: "Only those that died in the queue (empty: in any)" }, { name: "count", label: "How many at most (empty: all that are ready)", kind: "number" }] });
  }

  publish() {
    question("Publish a message?", `It goes to ${short(this.address, 200)}.`, "Publish",
      async (given) => {
        const properties = {};
        for (const name of ["message_id", "subject", "content_type"]) if (given[name]) properties[name] = given[name];
        if (given.durable) properties.durable = true;
        let own = {};
        try {
          if (given.own) own = JSON.parse(given.own);
        } catch (fault) {
          throw new Error(`The application properties are no JSON: ${fault.message}`);
        }
        const { routed } = await post("publish", { address: this.address, body: given.body, encoding: given.encoding, properties, application_properties: own });
        return routed ? "The message is published." : "No queue took the message.";
      },
      { fields: [
        { name: "body", label: "Body", kind: "text" },
        { name: "encoding", label: "The body is", kind: "choice", options: ["text", "base64"], value: "text" },
        { name: "content_type", label: "Content type" },
        { name: "message_id", label: "Message id" },
        { name: "subject", label: "Subject" },
        { name: "own", label: "Application properties, as an object of JSON" },
        { name: "durable", label: "durable", kind: "check" },
      ] });
  }
}
