// The page of a capture: filters, rows, lanes, credit and windows. It writes text, never HTML, because the data comes from
// peers. The functions before start() do not use the document.
"use strict";

const ROW = 22; // pixels of a row
const HEAD = 64; // pixels above the rows, for the names of lanes

// -- the data ------------------------------------------------------------------------------

// Return the lanes from the connection down to a lane.
function pathOf(lanes, index) {
  const path = [];
  for (let at = index; at !== null; at = lanes[at].parent) path.unshift(at);
  return path;
}

function laneName(lane) {
  return lane.kind === "link" ? lane.address ?? lane.name : `${lane.kind} ${lane.name}`;
}

function counted(count, one, several = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}

// Return, for each row, the deliveries that its frame is about.
function deliveriesByRow(deliveries) {
  const found = new Map();
  deliveries.forEach((delivery, index) => {
    for (const [row] of delivery.steps) {
      if (!found.has(row)) found.set(row, []);
      found.get(row).push(index);
    }
  });
  return found;
}

const octetsOf = (row) => Uint8Array.from(atob(row.octets), (each) => each.charCodeAt(0));

// Return the text of a row for the text filter, its octets included.
function searchText(row) {
  const fields = row.fields.map(([name, value]) => `${name}=${value}`).join(" ");
  return `${row.text} ${fields} ${row.error ? row.error.what : ""} ${new TextDecoder().decode(octetsOf(row))}`.toLowerCase();
}

// -- filters -------------------------------------------------------------------------------

// Return the lanes within a lane that have an address; null for all lanes.
function lanesOf(lanes, lane, address) {
  const wanted = address.trim().toLowerCase();
  if (lane === null && !wanted) return null;
  const found = new Set();
  lanes.forEach((each, index) => {
    const within = lane === null || pathOf(lanes, index).includes(lane);
    const there = !wanted || (each.address !== null && each.address.toLowerCase().includes(wanted));
    if (within && there) found.add(index);
  });
  return found;
}

// Return the rows of the deliveries with this delivery-id, or with this text in the delivery-tag; null without a filter.
function rowsOfDelivery(deliveries, wanted, chosen) {
  const text = wanted.trim().toLowerCase();
  if (!text) return null;
  const found = new Set();
  for (const delivery of deliveries) {
    if (chosen !== null && !chosen.has(delivery.lane)) continue;
    if (String(delivery.number) === text || delivery.tag.toLowerCase() === text) {
      for (const [row] of delivery.steps) found.add(row);
    }
  }
  return found;
}

// Return the numbers of the rows that match the filter: {lane: index or null, address, delivery, text: strings, errors: boolean}.
function passing(data, texts, filter) {
  const chosen = lanesOf(data.lanes, filter.lane, filter.address);
  const ofDelivery = rowsOfDelivery(data.deliveries, filter.delivery, chosen);
  const text = filter.text.toLowerCase();
  const ofLanes = chosen === null || ofDelivery !== null ? null : rowsAbout(data, chosen);
  const found = [];
  data.rows.forEach((row, index) => {
    if (ofLanes !== null && !chosen.has(row.lane) && !ofLanes.has(index)) return;
    if (ofDelivery !== null && !ofDelivery.has(index)) return;
    if (filter.errors && !row.error) return;
    if (text && !texts(index).includes(text)) return;
    found.push(index);
  });
  return found;
}

// Return the rows about deliveries of these lanes: one disposition may be about several links.
function rowsAbout(data, chosen) {
  const found = new Set();
  for (const delivery of data.deliveries) {
    if (chosen.has(delivery.lane)) for (const [row] of delivery.steps) found.add(row);
  }
  return found;
}

// -- places --------------------------------------------------------------------------------

// Return the position of each row among the matching rows, or -1.
function placesOf(rows, count) {
  const places = new Int32Array(count).fill(-1);
  rows.forEach((row, place) => { places[row] = place; });
  return places;
}

// Return how to draw a delivery: its lane, its top and bottom, and its matching steps.
function threadsOf(deliveries, places) {
  const threads = [];
  deliveries.forEach((delivery, index) => {
    const steps = [];
    for (const [row, step] of delivery.steps) if (places[row] >= 0) steps.push([places[row], step]);
    if (steps.length) {
      threads.push({ index, lane: delivery.lane, first: steps[0][0], last: steps[steps.length - 1][0], steps });
    }
  });
  return threads;
}

// Return the first and the last position that the scrolled window shows.
function shownPlaces(scrollTop, height, count) {
  const first = Math.max(0, Math.floor(scrollTop / ROW));
  return [first, Math.min(count - 1, Math.ceil((scrollTop + height) / ROW))];
}

// -- figures -------------------------------------------------------------------------------

// Return the value of a series at a row; null before its first value.
function valueAt(points, row) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= row) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1][1] : null;
}

// Return the series to show for a lane: its own and those of its session; for a lane with links, those of the busiest link.
function seriesFor(data, lane) {
  const inside = (index) => lane === null || pathOf(data.lanes, index).includes(lane);
  const ofLink = data.series.filter((each) => each.kind === "credit" && each.points.length && inside(each.lane));
  const busiest = ofLink.reduce((best, each) => (best && best.points.length >= each.points.length ? best : each), null);
  const link = busiest ? busiest.lane : lane;
  const sessions = link === null ? [] : pathOf(data.lanes, link).filter((index) => data.lanes[index].kind === "session");
  const windows = data.series.filter((each) => each.kind === "window" && sessions.includes(each.lane) && each.points.length);
  return ofLink.filter((each) => each.lane === link).concat(windows);
}

// Return the time of each row, from 0 to 1; its number is used if times are missing or go back.
function timesOf(rows) {
  let last = -Infinity;
  const times = rows.map((row) => (row.at === null ? last : row.at));
  const ordered = times.every((at) => {
    const fine = at >= last && at !== -Infinity;
    last = at;
    return fine;
  });
  const begin = times[0];
  const span = times[times.length - 1] - begin;
  if (!ordered || !(span > 0)) return rows.map((_, index) => (rows.length > 1 ? index / (rows.length - 1) : 0));
  return times.map((at) => (at - begin) / span);
}

// Return lines of octets: the offset, hex and ASCII.
function hexLines(octets) {
  const lines = [];
  for (let at = 0; at < octets.length; at += 16) {
    const codes = Array.from(octets.subarray(at, at + 16));
    const hex = codes.map((code) => code.toString(16).padStart(2, "0")).join(" ");
    const text = codes.map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}

// -- the page ------------------------------------------------------------------------------

function start() {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("data").textContent);
  const { lanes, rows, deliveries } = data;
  const byRow = deliveriesByRow(deliveries);
  const times = timesOf(rows);
  const texts = new Array(rows.length);
  const textOf = (index) => (texts[index] === undefined ? (texts[index] = searchText(rows[index])) : texts[index]);
  const connections = lanes.filter((lane) => lane.kind === "connection").length;
  const errors = rows.flatMap((row, index) => (row.error ? [index] : []));
  const scroller = get("scroller");
  const pool = [];
  let shown = []; // numbers of the matching rows
  let places = new Int32Array(0);
  let threads = [];
  let columns = []; // visible lanes, from left to right
  let columnOf = new Map();
  let chosen = null; // the row of the detail
  let series = [];
  let stripLines = null; // the strip without its cursor
  let drawing = false;
  const colours = {};

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "soft", "line", "there", "back", "bad", "credit"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
    colours.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    stripLines = null;
    draw();
  }

  function fit(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  // -- selection --

  function filterNow() {
    const lane = get("lane").value;
    return {
      lane: lane === "" ? null : Number(lane),
      address: get("address").value,
      delivery: get("delivery").value,
      text: get("text").value,
      errors: get("errors").checked,
    };
  }

  function refilter() {
    const filter = filterNow();
    shown = passing(data, textOf, filter);
    places = placesOf(shown, rows.length);
    threads = threadsOf(deliveries, places);
    const used = new Set(shown.map((row) => rows[row].lane));
    for (const thread of threads) used.add(thread.lane);
    columns = lanes.map((_, index) => index).filter((index) => used.has(index));
    columnOf = new Map(columns.map((lane, column) => [lane, column]));
    get("spacer").style.height = `${HEAD + shown.length * ROW}px`;
    const wrong = shown.filter((row) => rows[row].error).length;
    const some = shown.length === rows.length ? "" : `${shown.length.toLocaleString("en")} of `;
    const leftOut = data.leftOut ? `${counted(data.leftOut, "frame")} more left out` : "";
    const figures = [counted(rows.length, "frame"), leftOut, counted(connections, "connection"), counted(deliveries.length, "delivery", "deliveries"), counted(wrong, "error")];
    get("summary").textContent = some + figures.filter(Boolean).join(", ");
    get("next").disabled = !wrong;
    if (chosen !== null && places[chosen] >= 0) scrollTo(chosen);
    else scroller.scrollTop = 0;
    chooseFigures();
    draw();
  }

  function chooseFigures() {
    const lane = filterNow().lane;
    series = seriesFor(data, lane === null && chosen !== null ? rows[chosen].lane : lane);
    if (!series.length) series = seriesFor(data, null);
    stripLines = null;
  }

  function scrollTo(row) {
    const top = HEAD + places[row] * ROW;
    if (top - HEAD < scroller.scrollTop || top + ROW > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = top - scroller.clientHeight / 3;
    }
  }

  // -- drawing --

  function draw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      const [width, height] = [scroller.clientWidth, scroller.clientHeight];
      const most = Math.min(width * (width < 700 ? 0.35 : 0.4), width - 160);
      const laneWidth = Math.min(44, columns.length ? most / columns.length : most);
      const left = Math.ceil(laneWidth * columns.length) + 4;
      const [first, last] = shownPlaces(scroller.scrollTop - HEAD, height, shown.length);
      drawRows(first, last, left, width, height);
      drawLanes(first, last, laneWidth, left, height);
      drawStrip(first, last);
    });
  }

  function makeRow() {
    const line = element("div", "row");
    line.setAttribute("role", "option");
    const parts = ["at", "way", "where", "what"].map((name) => element("span", name));
    line.append(...parts);
    get("rows").append(line);
    return { line, parts, row: -1 };
  }

  function drawRows(first, last, left, width, height) {
    Object.assign(get("rows").style, { width: `${width - left}px`, height: `${height}px` });
    const count = last - first + 1;
    while (pool.length < count) pool.push(makeRow());
    pool.forEach((slot, at) => {
      slot.line.hidden = at >= count;
      if (at >= count) return;
      const index = shown[first + at];
      slot.line.style.transform = `translateY(${HEAD + (first + at) * ROW - scroller.scrollTop}px)`;
      slot.line.classList.toggle("chosen", index === chosen);
      slot.line.setAttribute("aria-selected", String(index === chosen));
      if (slot.row === index) return;
      slot.row = index;
      const row = rows[index];
      slot.line.className = `row ${row.way === ">" ? "there" : "back"}${row.error ? " bad" : ""}${index === chosen ? " chosen" : ""}`;
      slot.parts[0].textContent = row.at === null ? "" : row.at.toFixed(6);
      slot.parts[1].textContent = row.way === ">" ? "\u2192" : "\u2190";
      slot.parts[2].textContent = laneName(lanes[row.lane]);
      slot.parts[3].textContent = row.text;
    });
  }

  function line(pen, x, from, to) {
    pen.beginPath();
    pen.moveTo(x, from);
    pen.lineTo(x, to);
    pen.stroke();
  }

  function drawLanes(first, last, laneWidth, left, height) {
    const pen = fit(get("lanes"), left, height);
    Object.assign(get("lanes").style, { width: `${left}px`, height: `${height}px` });
    const x = (lane) => (columnOf.get(lane) + 0.5) * laneWidth + 2;
    const y = (place) => HEAD + (place + 0.5) * ROW - scroller.scrollTop;
    pen.lineWidth = 1;
    for (const lane of laneWidth < 6 ? [] : columns) { // narrower lanes would merge into one grey area
      pen.strokeStyle = colours.line;
      pen.setLineDash(lanes[lane].kind === "link" ? [] : [2, 3]);
      line(pen, x(lane), Math.max(0, HEAD - scroller.scrollTop), height);
    }
    pen.setLineDash([]);
    drawThreads(pen, x, y, first, last, laneWidth);
    for (let place = first; place <= last; place += 1) drawArrow(pen, rows[shown[place]], x, y(place), laneWidth);
    if (scroller.scrollTop < HEAD && laneWidth >= 14) drawNames(pen, x);
  }

  function drawThreads(pen, x, y, first, last, laneWidth) {
    const beside = Math.max(0, laneWidth / 2 - 5);
    for (const thread of threads) {
      if (thread.first > last) continue;
      const open = !deliveries[thread.index].settled;
      if (thread.last < first && !open) continue;
      const hue = (thread.index * 137.5) % 360;
      const at = x(thread.lane) + (beside ? ((thread.index * 3) % (2 * beside)) - beside : 0);
      pen.strokeStyle = pen.fillStyle = `hsl(${hue} 65% ${colours.dark ? 65 : 42}%)`;
      pen.lineWidth = 1.5;
      if (thread.last >= first) {
        line(pen, at, y(Math.max(thread.first, first - 1)), y(Math.min(thread.last, last + 1)));
        for (const [place, step] of thread.steps) if (place >= first && place <= last) drawStep(pen, at, y(place), step);
      }
      if (open && thread.last < last) { // the delivery is not settled, so its line goes on
        pen.setLineDash([1, 4]);
        line(pen, at, y(Math.max(thread.last, first - 1)), y(last + 1));
        pen.setLineDash([]);
      }
    }
  }

  // A transfer is a dot, a disposition a ring, the settlement a square, an aborted delivery an empty square.
  function drawStep(pen, x, y, step) {
    pen.beginPath();
    if (step === "settled" || step === "aborted") pen.rect(x - 3, y - 3, 6, 6);
    else pen.arc(x, y, 3, 0, 7);
    if (step === "transfer" || step === "settled") pen.fill();
    else pen.stroke();
  }

  function drawArrow(pen, row, x, y, laneWidth) {
    if (!columnOf.has(row.lane)) return;
    const [middle, half] = [x(row.lane), Math.max(2, Math.min(9, laneWidth / 2 - 2))];
    const forth = row.way === ">" ? 1 : -1;
    pen.strokeStyle = row.error ? colours.bad : row.way === ">" ? colours.there : colours.back;
    pen.lineWidth = row.error ? 2 : 1;
    pen.beginPath();
    pen.moveTo(middle - forth * half, y);
    pen.lineTo(middle + forth * half, y);
    pen.lineTo(middle + forth * (half - 4), y - 3);
    pen.moveTo(middle + forth * half, y);
    pen.lineTo(middle + forth * (half - 4), y + 3);
    pen.stroke();
  }

  function drawNames(pen, x) {
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colours.soft;
    for (const lane of columns) {
      pen.save();
      pen.translate(x(lane) + 3, HEAD - 4 - scroller.scrollTop);
      pen.rotate(-Math.PI / 3.2);
      const name = laneName(lanes[lane]);
      pen.fillText(name.length > 12 ? `${name.slice(0, 11)}\u2026` : name, 0, 0);
      pen.restore();
    }
  }

  function drawStrip(first, last) {
    const strip = get("strip");
    const [width, height] = [strip.clientWidth, strip.clientHeight];
    const pen = fit(strip, width, height);
    if (!rows.length) return;
    if (stripLines === null || stripLines.width !== strip.width || stripLines.height !== strip.height) {
      stripLines = document.createElement("canvas");
      drawFigures(stripLines, width, height);
    }
    pen.drawImage(stripLines, 0, 0, width, height);
    const from = shown.length ? times[shown[first]] * width : 0;
    const to = shown.length ? times[shown[Math.max(first, last)]] * width : 0;
    pen.fillStyle = colours.dark ? "rgb(255 255 255 / .16)" : "rgb(0 0 0 / .12)";
    pen.fillRect(from, 0, Math.max(2, to - from), height);
    const row = chosen !== null ? chosen : shown.length ? shown[first] : 0;
    pen.fillStyle = colours.ink;
    pen.fillRect(times[row] * width, 0, 1, height);
    drawLegend(row);
  }

  const largest = (points) => points.reduce((most, point) => Math.max(most, point[1]), 1);
  const colourOf = (each) => (each.kind === "credit" ? "credit" : each.way === ">" ? "there" : "back");

  function drawFigures(canvas, width, height) {
    const pen = fit(canvas, width, height);
    for (const each of series) {
      const most = largest(each.points);
      const y = (value) => height - 2 - (Math.max(0, value) / most) * (height - 6);
      pen.strokeStyle = colours[colourOf(each)];
      pen.lineWidth = each.kind === "credit" ? 1.5 : 1;
      pen.beginPath();
      let before = y(each.points[0][1]);
      pen.moveTo(times[each.points[0][0]] * width, before);
      for (const [row, value] of each.points) {
        pen.lineTo(times[row] * width, before);
        before = y(value);
        pen.lineTo(times[row] * width, before);
      }
      pen.lineTo(width, before);
      pen.stroke();
    }
    pen.fillStyle = colours.bad;
    for (const row of errors) pen.fillRect(times[row] * width - 1, height - 8, 2, 8);
  }

  function drawLegend(row) {
    const legend = get("legend");
    const parts = series.map((each) => {
      const lane = lanes[each.lane];
      const now = valueAt(each.points, row);
      const figure = now === null ? "\u2013" : now.toLocaleString("en");
      const what = each.kind === "credit" ? `credit of ${laneName(lane)}` : `window of ${laneName(lane)} ${each.way === ">" ? "\u2192" : "\u2190"}`;
      return element("span", colourOf(each), `${what}: ${figure} of ${largest(each.points).toLocaleString("en")}`);
    });
    legend.replaceChildren(...(parts.length ? parts : [element("span", "", "no credit and no window in this capture")]));
  }

  // -- one frame --

  function choose(row) {
    chosen = row;
    get("detail").hidden = row === null;
    if (row !== null) showDetail(row);
    chooseFigures();
    draw();
  }

  function showDetail(index) {
    const row = rows[index];
    const detail = get("detail");
    const close = element("button", "close", "\u2715");
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => { choose(null); scroller.focus(); });
    const where = pathOf(lanes, row.lane).map((lane) => laneName(lanes[lane])).join(" \u203a ");
    const at = row.at === null ? "unknown" : `${row.at.toFixed(6)} s`;
    const facts = [["frame", `${index + 1} of ${rows.length}`], ["at", at], ["lane", where]];
    if (lanes[row.lane].kind === "link") facts.push(["link name", lanes[row.lane].name]);
    const parts = [close, element("h2", "", row.text), list(facts)];
    if (row.error) {
      const box = element("div", "error");
      const texts = [row.error.usually, `Section: ${row.error.section}`];
      box.append(element("strong", "", row.error.what), ...texts.map((text) => element("p", "", text)));
      parts.push(box);
    }
    if (row.fields.length) parts.push(element("h3", "", "Fields"), list(row.fields));
    const about = byRow.get(index) || [];
    if (about.length) parts.push(element("h3", "", about.length > 1 ? `${about.length} deliveries` : "Delivery"));
    for (const each of about.slice(0, 20)) parts.push(deliveryBox(deliveries[each], index));
    const first = octetsOf(row);
    const rest = row.size - first.length;
    const octets = element("pre", "", hexLines(first) + (rest > 0 ? `\nand ${rest} octets more` : ""));
    detail.replaceChildren(...parts, element("h3", "", `${row.size} octets`), octets);
    detail.scrollTop = 0;
  }

  function list(pairs) {
    const made = element("dl");
    for (const [name, value] of pairs) made.append(element("dt", "", name), element("dd", "", value));
    return made;
  }

  function deliveryBox(delivery, here) {
    const box = element("div", "steps");
    const ended = delivery.settled ? "settled" : "not settled";
    box.append(element("p", "", `id ${delivery.number}, tag ${delivery.tag || "empty"}: ${delivery.outcome || "no outcome"}, ${ended}`));
    for (const [row, step] of delivery.steps.slice(0, 50)) {
      const button = element("button", "", `${step} ${row + 1}`);
      button.disabled = row === here;
      button.addEventListener("click", () => goTo(row));
      box.append(button);
    }
    const only = element("button", "", "only this delivery");
    only.addEventListener("click", () => {
      get("lane").value = String(delivery.lane);
      get("delivery").value = String(delivery.number);
      refilter();
    });
    box.append(only);
    return box;
  }

  function goTo(row) {
    if (places[row] < 0) {
      get("filters").reset();
      chosen = row;
      refilter();
    }
    choose(row);
    scrollTo(row);
  }

  // -- input --

  function fillIn() {
    lanes.forEach((lane, index) => {
      const depth = pathOf(lanes, index).length - 1;
      const address = lane.address === null ? "" : ` (${lane.address})`;
      get("lane").append(new Option(`${"\u2003".repeat(depth)}${lane.kind} ${lane.name}${address}`, String(index)));
    });
    const addresses = new Set(lanes.map((lane) => lane.address).filter((each) => each !== null));
    get("addresses").append(...Array.from(addresses, (address) => new Option("", address)));
    get("notes").append(...data.notes.map((note) => element("li", "", note)));
    get("notes").hidden = !data.notes.length;
  }

  get("filters").addEventListener("input", refilter);
  get("filters").addEventListener("submit", (event) => event.preventDefault());
  get("filters").addEventListener("reset", () => setTimeout(refilter));
  get("next").addEventListener("click", () => {
    const here = chosen === null ? -1 : chosen;
    const found = shown.filter((row) => rows[row].error);
    goTo(found.find((row) => row > here) ?? found[0]);
  });
  scroller.addEventListener("scroll", draw, { passive: true });
  scroller.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose(null);
    if (by === undefined) return;
    event.preventDefault();
    const top = shownPlaces(scroller.scrollTop - HEAD, 0, shown.length)[0];
    const next = shown[chosen === null || places[chosen] < 0 ? top : places[chosen] + by];
    if (next !== undefined) goTo(next);
  });
  get("stage").addEventListener("click", (event) => {
    const place = Math.floor((event.clientY - scroller.getBoundingClientRect().top + scroller.scrollTop - HEAD) / ROW);
    if (place >= 0 && place < shown.length) choose(shown[place]);
  });
  get("strip").addEventListener("click", (event) => {
    if (!shown.length) return;
    const box = get("strip").getBoundingClientRect();
    const wanted = (event.clientX - box.left) / box.width;
    const after = shown.findIndex((row) => times[row] >= wanted);
    scroller.scrollTop = (after < 0 ? shown.length : after) * ROW - scroller.clientHeight / 3;
  });
  new ResizeObserver(draw).observe(scroller);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);

  readColours();
  fillIn();
  refilter();
  requestAnimationFrame(() => performance.mark("frames drawn"));
}

start();
