// Elements and numbers. Text of peers is always written as text: there is no HTML in any script of this page.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `props` are attributes, `on...` functions, `class`, `text`. */
export function el(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** Make an element of SVG. */
export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(made, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Write text, only if it is another: what is selected stays selected. */
export function write(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Show these things in a parent: elements are used again, and never more than there are things. */
export function sync(parent, things, make, update) {
  while (parent.children.length > things.length) parent.lastElementChild.remove();
  things.forEach((thing, place) => {
    let child = parent.children[place];
    if (!child) parent.append((child = make()));
    update(child, thing);
  });
}

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => (value === null || value === undefined ? "\u2013" : WHOLE.format(value));
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const few = (value) => SHORT.format(value);

export function rate(value) {
  return `${value >= 100 ? WHOLE.format(Math.round(value)) : SHORT.format(value)}/s`;
}

export function octets(value) {
  if (value === null || value === undefined) return "\u2013";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (value >= 1024 && place < units.length - 1) { value /= 1024; place += 1; }
  return `${place ? SHORT.format(value) : value} ${units[place]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "\u2013";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= length) return `${SHORT.format(seconds / length)} ${unit}`;
  }
  return `${SHORT.format(seconds)} s`;
}

export function moment(seconds) {
  return seconds === null || seconds === undefined ? "\u2013" : new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);
}

/** A name that is short enough for a title or a picture. */
export function short(text, most = 60) {
  const signs = Array.from(String(text).slice(0, most * 2 + 2));
  return signs.length > most ? signs.slice(0, most - 1).join("") + "\u2026" : signs.join("");
}

/** A list of names and values; `pairs` may have an element as a value. */
export function facts(pairs) {
  const list = el("dl");
  for (const [name, value] of pairs) {
    list.append(el("dt", { text: name }), value instanceof Node ? el("dd", {}, value) : el("dd", { text: value }));
  }
  return list;
}

/** Put new contents in place of old ones, only if they differ. */
export function replace(parent, ...children) {
  const kept = children.filter((child) => child);
  if (kept.length === parent.children.length && kept.every((child, place) => child.isEqualNode(parent.children[place]))) return;
  parent.replaceChildren(...kept);
}

export const queueLink = (address, name) => el("a", { href: queueHref(address), text: short(name ?? address, 120), title: short(name ?? address, 300) });
export const queueHref = (address) => `#/queue?address=${encodeURIComponent(address)}`;
