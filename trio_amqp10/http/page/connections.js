// The list of connections, and one of them.

import { post } from "./api.js";
import { count, duration, el, facts, moment, octets, queueLink, replace, short, write } from "./elements.js";
import { question } from "./dialogs.js";
import { Frames } from "./frames.js";
import { PagedTable, Table } from "./tables.js";

export class Connections {
  title = "Connections";

  constructor() {
    const text = (title, name, hidden = false) => ({ title, sort: name, kind: "name", hidden, set: (cell, each) => write(cell, short(each[name] ?? "\u2013", 120)) });
    const number = (title, name, show = count, hidden = false) => ({ title, number: true, sort: name, hidden, set: (cell, each) => write(cell, show(each[name])) });
    this.table = new PagedTable("Connections", [
      { title: "Number", sort: "number", make: () => el("a"), set: (cell, each) => {
        cell.firstElementChild.setAttribute("href", `#/connection?number=${each.number}`);
        write(cell.firstElementChild, `#${each.number}`);
      } },
      text("User", "user"), text("Container", "container_id"), text("Host", "host"), text("Protocol", "protocol"), text("State", "state", true),
      { title: "Open for", number: true, sort: "since", set: (cell, each) => write(cell, duration(Date.now() / 1000 - each.since)) },
      number("Channels", "channels"), number("Unsettled", "unsettled"),
      number("Messages in", "messages_in"), number("Messages out", "messages_out"), number("Waits to be written", "waiting", octets, true),
    ], "No connection is open, or none has this name.", "amqp10/connections", { noun: "connection" });
    this.element = el("div", {}, el("h2", { text: "Connections" }), this.table.element);
  }

  refresh() {
    return this.table.refresh();
  }
}

export class Connection {
  constructor(query) {
    this.number = Number(query.get("number"));
    this.title = `Connection #${this.number}`;
    this.figures = el("div");
    this.fault = el("p", { class: "error", hidden: true });
    const number = (title, name, none = "\u2013") => ({ title, number: true, set: (cell, each) => write(cell, each[name] === null ? none : count(each[name])) });
    this.channels = new Table("Channels", [
      number("Number", "number"),
      { title: "State", set: (cell, each) => write(cell, each.state) },
      number("Window in", "incoming_window"), number("Window out", "outgoing_window"), number("Prefetch", "prefetch"),
      number("Unsettled in", "unsettled_in"), number("Unsettled out", "unsettled_out"), number("Consumers", "consumers"),
    ], "No channel, or none that you may see.");
    this.links = new Table("Links", [
      { title: "Link", kind: "name", set: (cell, each) => write(cell, short(each.name, 120)) },
      { title: "Direction", set: (cell, each) => write(cell, each.role === "sender" ? "to the peer" : "from the peer") },
      { title: "Address", kind: "name", make: () => queueLink("", ""), set: (cell, each) => {
        const link = cell.firstElementChild;
        link.setAttribute("href", `#/queue?address=${encodeURIComponent(each.address ?? "")}`);
        write(link, short(each.address ?? "\u2013", 120));
      } },
      { title: "State", set: (cell, each) => write(cell, each.state) },
      number("Credit", "credit", "no limit"), number("Unsettled", "unsettled"), number("Messages", "messages"),
      { title: "", make: () => el("button", { type: "button", text: "End" }), set: (cell, each) => { cell.firstElementChild.onclick = () => this.end(each); } },
    ], "No link, or none that you may see.");
    this.frames = new Frames(this.number);
    this.element = el("div", {}, el("h2", { text: this.title }), this.fault,
      el("div", { class: "bar" }, el("button", { type: "button", class: "danger", text: "Close the connection", onclick: () => this.close() })),
      el("div", { class: "cards" },
        el("section", { class: "card wide", "aria-label": "Figures" }, el("h3", { text: "Figures" }), this.figures),
        el("section", { class: "card wide", "aria-label": "Channels" }, el("h3", { text: "Sessions and channels" }), this.channels.element),
        el("section", { class: "card wide", "aria-label": "Links" }, el("h3", { text: "Links and consumers" }), this.links.element),
        this.frames.element));
  }

  async refresh() {
    let found;
    try {
      found = await post("connection", { connection: this.number });
    } catch (fault) {
      if (fault.status !== 404) throw fault;
      this.fault.textContent = "This connection is closed.";
      this.fault.hidden = false;
      return;
    }
    this.fault.hidden = true;
    replace(this.figures, facts([
      ["Peer", found.container_id || "\u2013"],
      ["User", found.user ?? "not authenticated"],
      ["Host", found.host ?? "this process, or a socket of this machine"],
      ["Protocol", `${found.protocol}, ${found.state}`],
      ["Since", `${moment(found.since)} UTC`],
      ["Messages", `${count(found.messages_in)} in, ${count(found.messages_out)} out`],
      ["Octets", `${octets(found.octets_in)} in, ${octets(found.octets_out)} out, ${octets(found.waiting)} wait to be written`],
      ["Unsettled", count(found.unsettled)],
    ]));
    this.channels.set(found.channel_list);
    this.links.set(found.link_list);
  }

  close() {
    question("Close the connection?", "The peer gets the error connection-forced with this reason. It may connect again.", "Close the connection",
      async ({ reason }) => { await post("close-connection", { connection: this.number, reason }); return "The connection is closed."; },
      { danger: true, fields: [{ name: "reason", label: "Reason", value: "closed by an operator" }] });
  }

  end(link) {
    question("End the link?", `The peer gets the error detach-forced for ${short(link.name, 200)} with this reason.`, "End the link",
      async ({ reason }) => { await post("close-link", { link: link.identity, reason }); return "The link has ended."; },
      { danger: true, fields: [{ name: "reason", label: "Reason", value: "closed by an operator" }] });
  }
}
