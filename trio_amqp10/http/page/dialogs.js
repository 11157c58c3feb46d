// Questions: nothing is changed before one of them was answered. A dialog closes with Escape, and gives the focus back.

import { el } from "./elements.js";

/**
 * Ask a question, and do what was agreed to.
 *
 * The dialog stays open while it is done, and shows why it was refused.
 *
 * @param title of the dialog.
 * @param text what will happen.
 * @param button the word on the button that does it.
 * @param act does it, with the values of the fields by name; returns a sentence to show, or nothing.
 * @param fields what is asked for: `{name, label, kind, value, options, needed}`.
 */
export function question(title, text, button, act, { fields = [], danger = false } = {}) {
  const before = document.activeElement;
  const inputs = fields.map((each) => [each, input(each)]);
  const result = el("p", { role: "alert", hidden: true });
  const go = el("button", { type: "submit", class: danger ? "danger" : null, text: button });
  const leave = el("button", { type: "button", text: "Cancel", onclick: () => dialog.close() });
  const form = el("form", { method: "dialog" },
    ...inputs.map(([each, made]) => el("label", { class: each.kind === "check" ? "check" : null }, ...(each.kind === "check" ? [made, each.label] : [each.label, made]))),
    result, el("div", { class: "bar" }, leave, go));
  const dialog = el("dialog", { "aria-label": title, onclose: () => { dialog.remove(); before?.focus?.(); } },
    el("h2", { text: title }), text ? el("p", { text }) : null, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const values = Object.fromEntries(inputs.map(([each, made]) => [each.name, each.kind === "check" ? made.checked : made.value]));
      const said = await act(values);
      if (!said) { dialog.close(); return; }
      result.className = "calm";
      result.textContent = said;
      go.hidden = true;
      leave.textContent = "Close";
      leave.focus();
    } catch (fault) {
      result.className = "error";
      result.textContent = fault.message;
      go.disabled = false;
    }
    result.hidden = false;
  });
  document.body.append(dialog);
  dialog.showModal();
  (inputs[0]?.[1] ?? leave).focus();
}

function input({ name, kind, value, options, needed }) {
  if (kind === "choice") return el("select", { name }, ...options.map((each) => el("option", { value: each, text: each, selected: each === value })));
  if (kind === "text") {
    const made = el("textarea", { name, required: needed });
    made.value = value ?? "";
    return made;
  }
  const made = el("input", { name, required: needed, autocomplete: "off", type: kind === "check" ? "checkbox" : kind === "number" ? "number" : "text", min: kind === "number" ? 1 : null });
  if (kind === "check") made.checked = Boolean(value);
  else made.value = value ?? "";
  return made;
}
