// Messages that are looked at, and stay where they are.

import { post } from "./api.js";
import { count, duration, el, facts, moment, octets, short } from "./elements.js";

const COUNT = 20;
const FORMS = ["text", "JSON", "hex"];

export class Messages {
  constructor(address) {
    this.address = address;
    this.offset = 0;
    this.list = el("div");
    this.words = el("span", { role: "status", text: "They stay in the queue." });
    this.back = el("button", { type: "button", text: "Earlier", disabled: true, onclick: () => this.look(this.offset - COUNT) });
    this.next = el("button", { type: "button", text: "Later", disabled: true, onclick: () => this.look(this.offset + COUNT) });
    this.element = el("section", { class: "card wide", "aria-label": "Messages" }, el("h3", { text: "Messages" }),
      el("div", { class: "bar" }, el("button", { type: "button", text: "Look at messages", onclick: () => this.look(0) }), this.back, this.next, this.words), this.list);
  }

  async look(offset) {
    try {
      const found = await post("browse", { address: this.address, count: COUNT, offset });
      this.offset = offset;
      this.list.replaceChildren(...found.map((each, place) => shown(each, offset + place + 1)));
      this.words.textContent = found.length ? `Messages ${count(offset + 1)} to ${count(offset + found.length)}. They stay in the queue.` : "No message is ready.";
      this.back.disabled = offset === 0;
      this.next.disabled = found.length === 0;
    } catch (fault) {
      this.list.replaceChildren(el("p", { class: "error", text: fault.message }));
    }
  }
}

function shown(message, number) {
  const body = el("pre", { tabindex: "0", "aria-label": "body" });
  const buttons = FORMS.map((form) => el("button", { type: "button", text: form, onclick: () => choose(form) }));
  const choose = (form) => {
    buttons.forEach((each, place) => each.setAttribute("aria-pressed", String(FORMS[place] === form)));
    body.textContent = bodyAs(message, form);
  };
  choose(first(message));
  const table = (name, values) => Object.keys(values ?? {}).length ? [el("h3", { text: name }), facts(Object.entries(values).map(([key, value]) => [short(key, 80), typeof value === "object" ? JSON.stringify(value) : String(value)]))] : [];
  const size = message.body_octets ?? null;
  return el("details", { class: "message" },
    el("summary", { text: `${count(number)}: ${octets(message.octets)}, ${duration(message.age)} old${message.redelivered ? ", delivered before" : ""}${message.died_in ? ", died before" : ""} \u00b7 ${short(bodyAs(message, "text"), 80)}` }),
    facts([
      ["Priority", String(message.priority)],
      ["Failed deliveries", count(message.failures)],
      ["Expires in", duration(message.expires)],
    ]),
    message.fault ? el("p", { class: "error", text: `The message cannot be read: ${message.fault}. These are its octets.` }) : null,
    ...table("Properties", message.properties),
    ...table("Application properties", message.application_properties),
    ...table("Annotations", Object.fromEntries(Object.entries(message.annotations ?? {}).filter(([key]) => key !== "x-opt-deaths"))),
    ...history(message),
    el("div", { class: "forms", role: "group", "aria-label": "Show the body as" }, ...buttons), body,
    size !== null && size > 65536 ? el("p", { class: "note", text: `The first 65,536 of ${count(size)} octets.` }) : null);
}

/** The history of a dead message as a timeline; a message may name only its last death, in its annotations. */
function history({ deaths, died_in: queue, annotations: notes }) {
  if (!deaths.length && queue) {
    const more = [notes["x-opt-deadletter-condition"], notes["x-opt-deadletter-description"]].filter(Boolean).join(": ");
    const text = `${notes["x-opt-deadletter-reason"] ?? "died"} in ${queue}${more ? ` (${more})` : ""}`;
    return [el("h3", { text: "Last death" }), el("ol", { class: "deaths" }, el("li", { text }))];
  }
  if (!deaths.length) return [];
  return [el("h3", { text: "Deaths, the last one first" }), el("ol", { class: "deaths" }, ...deaths.map((each) =>
    el("li", { text: `${moment(each.last_time ?? each.time)}: ${each.reason} in ${each.queue}${each.count > 1 ? `, ${count(each.count)} times since ${moment(each.time)}` : ""}${each.exchange ? `, published to ${each.exchange}` : ""}${each.routing_keys?.length ? ` with the key ${each.routing_keys.join(", ")}` : ""}` })))];
}

const octetsOf = (message) => Uint8Array.from(atob(message.body), (sign) => sign.charCodeAt(0));

function first(message) {
  if (message.body === undefined) return "JSON";
  const octets = octetsOf(message);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(octets);
    if (/[\u0000-\u0008\u000e-\u001f]/.test(text)) return "hex";
    return /^\s*[[{]/.test(text) && JSON.parse(text) ? "JSON" : "text";
  } catch (fault) {
    return fault instanceof SyntaxError || message.body_octets > octets.length ? "text" : "hex";
  }
}

/** The body in one of the forms; a body that is no octets is a value, which is shown as JSON. */
export function bodyAs(message, form) {
  if (message.body === undefined) return typeof message.value === "string" && form === "text" ? message.value : JSON.stringify(message.value, null, form === "text" ? 0 : 2);
  const octets = octetsOf(message);
  if (form === "hex") return hex(octets);
  const text = new TextDecoder().decode(octets);
  if (form === "text") return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch (fault) {
    return `The body is no JSON: ${fault.message}`;
  }
}

/** Octets in lines of sixteen, as digits and as text. */
export function hex(octets) {
  const lines = [];
  for (let at = 0; at < octets.length; at += 16) {
    const some = Array.from(octets.subarray(at, at + 16));
    const digits = some.map((each) => each.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits}  ${some.map((each) => each > 31 && each < 127 ? String.fromCharCode(each) : ".").join("")}`);
  }
  return lines.join("\n");
}
