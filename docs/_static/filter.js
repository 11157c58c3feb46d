// Above each long table: an input that hides the rows without the words that are typed. A page with .filter-tables has one input for all its tables:
// there a whole message can be pasted, because the words in code may stand in it with values between them.

"use strict";

const LONG = 20;
const WORDS = 12; // characters of a message without its values, below which it would be found in any text

function makeFilter(rows, fits) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("span");
  label.className = "filter";
  input.type = "search";
  count.setAttribute("role", "status");
  label.append("Filter", input, count);
  input.addEventListener("input", () => {
    const typed = input.value.toLowerCase().trim();
    let shown = 0;
    rows.forEach((row, index) => {
      row.hidden = typed !== "" && !fits(index, typed);
      if (!row.hidden) shown += 1;
    });
    count.textContent = typed ? `${shown} of ${rows.length} rows` : "";
    label.dispatchEvent(new Event("filtered"));
  });
  return label;
}

function hasWords(text, typed) {
  return typed.split(/\s+/).every((word) => text.includes(word));
}

// Whether the parts between the dots of a message stand in a text, in this order.
function isPasted(message, typed) {
  const parts = message.split("...").map((part) => part.trim()).filter(Boolean);
  if (parts.join("").length < WORDS) return false;
  let at = 0;
  return parts.every((part) => {
    at = typed.indexOf(part, at);
    if (at < 0) return false;
    at += part.length;
    return true;
  });
}

document.addEventListener("DOMContentLoaded", () => {
  const tables = [...document.querySelectorAll("[role=main] table.docutils")];
  const rowsOf = (table) => [...table.querySelectorAll("tbody tr")];
  const place = document.querySelector("[role=main] .filter-tables");
  if (place) {
    const rows = tables.flatMap(rowsOf);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const messages = rows.map((row) => (row.querySelector("code")?.textContent ?? "").toLowerCase());
    const label = makeFilter(rows, (index, typed) => hasWords(texts[index], typed) || isPasted(messages[index], typed));
    label.addEventListener("filtered", () => {
      for (const table of tables) table.closest(".table-wrapper").hidden = rowsOf(table).every((row) => row.hidden);
    });
    place.append(label);
    return;
  }
  for (const table of tables) {
    const rows = rowsOf(table);
    if (rows.length < LONG) continue;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    table.closest(".table-wrapper").before(makeFilter(rows, (index, typed) => hasWords(texts[index], typed)));
  }
});
