// The page: which view is shown, and when it is read again.
//
// One view is shown at a time, and the others are forgotten. It is read again some time after its last answer, and not while
// the page is hidden. A server that does not answer is tried again until it does.

import { Away, get } from "./api.js";
import { Connection, Connections } from "./connections.js";
import { Overview } from "./overview.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { Topology } from "./topology.js";

const VIEWS = { overview: Overview, queues: Queues, queue: Queue, topology: Topology, connections: Connections, connection: Connection };
const PARENTS = { queue: "queues", connection: "connections" };
const PAUSE = 2000;
const LONGEST = 10000;
const SHARE = 30;  // A slow answer is asked for less often: the server works for this page a thirtieth of the time.

const place = document.getElementById("view");
const state = document.getElementById("state");
let view = null, timer = null, failures = 0, known = false, turn = 0;

function tell(text) {
  if (state.textContent !== text) state.textContent = text;
  state.hidden = !text;
}

async function introduce() {
  if (known) return;
  const [who, cluster] = await Promise.all([get("whoami"), get("cluster-name")]);
  document.getElementById("title").textContent = cluster.name;
  document.getElementById("user").textContent = who.name === "none" ? "" : who.name;
  known = true;
}

async function read(shown) {
  const mine = (turn += 1);
  let pause = PAUSE;
  try {
    await introduce();
    const began = performance.now();
    await shown.refresh();
    pause = Math.max(PAUSE, Math.min(SHARE * (performance.now() - began), LONGEST * 3));
    failures = 0;
    if (mine === turn) tell("");
  } catch (fault) {
    if (mine !== turn) return;
    if (fault instanceof Away) {
      failures += 1;
      pause = Math.min(LONGEST, 1000 * 2 ** Math.min(failures - 1, 4));
      tell(`The server does not answer. This page tries again every ${pause / 1000} s, and shows what it knew.`);
    } else {
      tell(fault.message);
    }
  }
  if (mine === turn && !document.hidden) timer = setTimeout(() => read(shown), pause);
}

function show() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const chosen = Object.hasOwn(VIEWS, name) ? name : "overview";
  clearTimeout(timer);
  view = new VIEWS[chosen](new URLSearchParams(query ?? ""));
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  place.replaceChildren(view.element);
  document.title = `${view.title} \u00b7 trio-amqp10`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${PARENTS[chosen] ?? chosen}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  tell("");
  read(view);
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); place.focus(); });
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden && view) read(view);
});
window.addEventListener("hashchange", () => { show(); place.focus(); });
show();
