// The frames of a connection, from the moment on when a button is pressed.

import { post } from "./api.js";
import { count, counted, el, facts, octets, write } from "./elements.js";
import { hex } from "./messages.js";

const PAUSE = 1000;
const MOST = 500;
const PAYLOAD = 200;

export class Frames {
  constructor(number) {
    this.number = number;
    this.watch = null;
    this.last = 0;
    this.paused = false;
    this.over = false;
    const button = (text, act) => el("button", { type: "button", text, onclick: act });
    this.begins = button("Watch frames", () => this.begin());
    this.ends = button("Stop", () => this.end());
    this.pauses = button("Pause", () => this.pause());
    this.clears = button("Clear", () => { this.list.replaceChildren(); this.tell(); });
    this.payload = el("input", { type: "checkbox" });
    this.asks = el("label", { class: "check" }, this.payload, "with the first octets of contents");
    this.words = el("p", { class: "note", role: "status" });
    this.fault = el("p", { class: "error", role: "alert", hidden: true });
    this.list = el("div", { class: "frames", role: "log", "aria-label": "Frames", "aria-live": "off", tabindex: "0", hidden: true });
    this.element = el("section", { class: "card wide", "aria-label": "Frames" }, el("h3", { text: "Frames" }),
      el("div", { class: "bar" }, this.begins, this.asks, this.pauses, this.clears, this.ends), this.fault, this.words, this.list);
    this.show();
  }

  show() {
    const runs = this.watch !== null;
    this.begins.hidden = this.asks.hidden = runs;
    this.ends.hidden = this.pauses.hidden = !runs;
    this.clears.hidden = this.list.hidden;  // What was shown can be cleared after the end, too.
    write(this.pauses, this.paused ? "Go on" : "Pause");
    this.tell();
  }

  tell() {
    const shown = counted(this.list.querySelectorAll("details").length, "frame");
    if (this.list.hidden) write(this.words, "Frames appear here from the moment on when you press the button. The log has who watches.");
    else if (this.paused) write(this.words, `${shown}. It is paused: what is not kept meanwhile is left out.`);
    else if (this.over) write(this.words, `${shown}. The connection is closed.`);
    else if (this.watch === null) write(this.words, `${shown}. The watch has ended.`);
    else write(this.words, `${shown}, newest last. The last ${count(MOST)} stay.`);
  }

  fail(fault) {
    this.fault.textContent = fault.message;
    this.fault.hidden = false;
  }

  async begin() {
    this.begins.disabled = true;
    try {
      const { watch } = await post("watch-frames", { connection: this.number, payload: this.payload.checked ? PAYLOAD : 0 });
      Object.assign(this, { watch, last: 0, paused: false, over: false });
      this.fault.hidden = true;
      this.list.hidden = false;
      this.list.replaceChildren();
      this.read(watch);
    } catch (fault) {
      this.fail(fault);
    }
    this.begins.disabled = false;
    this.show();
    if (this.watch) this.ends.focus();
  }

  pause() {
    this.paused = !this.paused;
    this.show();
  }

  async end() {
    const watch = this.watch;
    this.watch = null;
    this.paused = false;
    this.show();
    this.begins.focus();
    if (watch) await post("end-watch", { watch }).catch(() => {});  // It ends by itself too.
  }

  /** Ask for frames until the watch ends, or this view is gone. */
  async read(watch) {
    let failures = 0;
    while (this.watch === watch) {
      if (!this.element.isConnected) { this.end(); return; }
      try {
        const paused = this.paused;
        const found = await post("frames", { watch, after: this.last, count: paused ? 0 : MOST });
        if (this.watch !== watch) return;
        failures = 0;
        if (!paused) this.add(found.frames);
        if (found.over && !found.frames.length && !paused) {
          this.over = true;
          this.end();
          return;
        }
        this.tell();
      } catch (fault) {
        failures += 1;
        if (fault.status || failures > 5) {
          if (this.watch === watch) { this.watch = null; this.fail(fault); this.show(); }
          return;
        }
      }
      await new Promise((done) => { setTimeout(done, PAUSE); });
    }
  }

  add(frames) {
    const list = this.list;
    const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    for (const frame of frames) {
      const missed = frame.number - this.last - 1;
      if (missed > 0) list.append(el("p", { class: "blocked", text: `${counted(missed, "frame")} left out: there were too many at once.` }));
      if (frame.left_out) list.append(el("p", { class: "blocked", text: `${octets(frame.left_out)} ${frame.direction === "in" ? "from" : "to"} the peer left out: there was too much at once.` }));
      list.append(row(frame));
      this.last = frame.number;
    }
    while (list.children.length > MOST) list.firstElementChild.remove();
    if (follows) list.scrollTop = list.scrollHeight;
  }
}

function row(frame) {
  const inward = frame.direction === "in";
  const details = el("details", { class: "frame" },
    el("summary", {},
      el("span", { class: "time", text: new Date(frame.time * 1000).toISOString().slice(11, 23) }),
      el("span", { class: inward ? "in" : "out", text: inward ? "from peer" : "to peer" }),
      el("span", { class: "channel", text: frame.channel ?? "\u2013" }),
      el("span", { class: "text", text: frame.text })));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(more(frame));
  });
  return details;
}

function more(frame) {
  const pairs = Object.entries(frame.fields).map(([name, value]) => [name.replaceAll("_", "-"), value]);
  const size = frame.payload_octets ? `, ${octets(frame.payload_octets)} of them content of a message` : "";
  const element = el("div", {}, facts([["size", `${octets(frame.octets)}${size}`], ...pairs]));
  if (frame.payload) {
    const found = Uint8Array.from(atob(frame.payload), (each) => each.charCodeAt(0));
    element.append(el("pre", { tabindex: "0", "aria-label": "content", text: hex(found) }));
  }
  return element;
}
