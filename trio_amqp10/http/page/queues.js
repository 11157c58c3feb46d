// The list of queues.

import { setSpark, spark } from "./charts.js";
import { count, duration, el, octets, queueHref, queueLink, rate, short, write } from "./elements.js";
import { PagedTable } from "./tables.js";

export class Queues {
  title = "Queues";

  constructor() {
    this.before = new Map();
    const number = (title, name, show = count, hidden = false) => ({ title, number: true, sort: name, hidden, set: (cell, each) => write(cell, show(each[name])) });
    this.table = new PagedTable("Queues", [
      { title: "Name", kind: "name", sort: "name", make: () => queueLink("", ""), set: (cell, each) => {
        const link = cell.firstElementChild;
        link.setAttribute("href", queueHref(each.address));
        link.title = short(each.name, 300);
        write(link, short(each.name, 120));
      } },
      number("Ready", "ready"),
      number("Unacked", "unacked"),
      { title: "Depth", make: spark, set: (cell, each) => setSpark(cell.firstElementChild, each.depths) },
      { title: "In", number: true, set: (cell, each) => write(cell, this.rate(each, "arrived")) },
      { title: "Out", number: true, set: (cell, each) => write(cell, this.rate(each, "delivered")) },
      number("Consumers", "consumers"),
      number("Oldest", "oldest", duration),
      number("Size", "octets", octets),
    ], "There is no queue of this name.", "amqp10/queues", { noun: "queue" });
    this.element = el("div", {}, el("h2", { text: "Queues" }), this.table.element);
    const show = this.table.set.bind(this.table);
    this.table.set = (items) => { show(items); this.keep(items); };
  }

  refresh() {
    return this.table.refresh();
  }

  /** The rate since the queue was shown before, in at most one page of queues. */
  rate(queue, name) {
    const earlier = this.before.get(queue.address);
    const seconds = earlier ? (performance.now() - earlier.at) / 1000 : 0;
    return seconds < 0.5 ? "\u2013" : rate(Math.max(0, queue[name] - earlier[name]) / seconds);
  }

  keep(items) {
    const at = performance.now();
    this.before = new Map(items.map(({ address, arrived, delivered }) => {
      const earlier = this.before.get(address);
      return [address, earlier && at - earlier.at < 500 ? earlier : { at, arrived, delivered }];
    }));
  }
}
