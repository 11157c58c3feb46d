// The scenarios of the table for a client in JavaScript, as scenarios.py has them: main(Client), where a Client has the methods of
// Client there, each of which may return a promise. PROGRAM URL ADDRESS BARE-URL; one line of JSON for each scenario.
"use strict";

const assert = require("node:assert");
const readline = require("node:readline");

const MESSAGES = 200;
const LARGE = 1024 * 1024;
const HEARTBEAT = 1; // seconds
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

class Absent extends Error {}

// within(promise, what): it fails if the promise takes more than 15 seconds.
function within(promise, what, seconds = 15) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing came in ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Messages that came and were not taken yet: what a callback puts is what get() waits for.
class Inbox {
  constructor() { this.items = []; this.waiting = []; }
  put(item) { const next = this.waiting.shift(); if (next) next(item); else this.items.push(item); }
  get() { return this.items.length ? Promise.resolve(this.items.shift()) : new Promise((resolve) => this.waiting.push(resolve)); }
}

const properties091 = (n) => ({
  contentType: "text/plain", contentEncoding: "utf-8",
  headers: { text: `t${n}`, number: n, large: 2 ** 40 + n, negative: -1 - n, true: true, half: n + 0.5, list: [1, "x", [true]], table: { deep: { n } }, none: null },
  deliveryMode: 1 + (n % 2), priority: n % 10, correlationId: `c${n}`, replyTo: `r${n}`, expiration: `${600000 + n}`,
  messageId: `m${n}`, type: `y${n}`, userId: "guest", appId: `a${n}`,
});

// A broker may add annotations of its own: those that were sent are compared.
function only(found, name, sent) {
  if (!/annotations/i.test(name)) return found;
  return Object.fromEntries(Object.keys(sent[name]).map((key) => [key, found && found[key]]));
}

async function main(Client) {
  const [url, address, bare] = process.argv.slice(2);
  const open = (where, heartbeat = 0, requeues = false) => within(Client.open(where, heartbeat, requeues), "connect");
  const named = async (name, client) => {
    const queue = address.replace("NAME", name);
    await within(client.declare(queue), "declare");
    return queue;
  };
  const send = (client, ...what) => within(client.send(...what), "send");
  const get = (client, queue) => within(client.get(queue), "get");
  const close = (client) => within(client.close(), "close");
  const scenarios = {
    async with_password() { await close(await open(url)); },
    async without_password() { await close(await open(bare)); },
    async wrong_password() {
      let client;
      try {
        client = await within(Client.open(url.replace(":guest@", ":wrong@"), 0), "connect", 5);
      } catch (error) {
        if (/nothing came/.test(error.message)) throw new Error("it does not report that it is refused");
        return;
      }
      try { await named("wrong", client); } catch { return; }
      throw new Error("the client was let in");
    },
    async declare() {
      const client = await open(url);
      for (let i = 0; i < 2; i++) await named("declare", client);
      await close(client);
    },
    async properties() {
      const client = await open(url);
      const queue = await named("properties", client);
      for (let n = 0; n < MESSAGES; n++) await send(client, queue, Buffer.from(`body ${n}`), client.properties(n));
      for (let n = 0; n < MESSAGES; n++) {
        const got = await get(client, queue);
        assert.equal(got.body.toString(), `body ${n}`);
        const sent = client.properties(n);
        for (const name of Object.keys(sent)) assert.deepEqual({ [name]: only(got.properties[name], name, sent) }, { [name]: sent[name] });
        await got.accept();
      }
      await close(client);
    },
    async outcomes() {
      const client = await open(url);
      if (Client.waitsForNothing) { await close(client); throw new Absent(); }
      const queue = await named("outcomes", client);
      for (let n = 0; n < MESSAGES; n++) await send(client, queue, Buffer.from("x"), {});
      for (let n = 0; n < MESSAGES; n++) await (await get(client, queue)).accept();
      await close(client);
    },
    async requeue() {
      const client = await open(url, 0, true);
      const queue = await named("requeue", client);
      await send(client, queue, Buffer.from("again"), {});
      const first = await get(client, queue);
      assert.ok(!first.redelivered);
      await first.requeue();
      const second = await get(client, queue);
      assert.equal(second.body.toString(), "again");
      const marked = second.redelivered || (first.first && !second.first) || Client.onlyReleases;
      assert.ok(marked, "it is not marked as delivered before");
      await second.accept();
      await close(client);
    },
    async large() {
      const client = await open(url);
      const queue = await named("large", client);
      const body = Buffer.alloc(LARGE, Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
      await send(client, queue, body, {});
      const got = await get(client, queue);
      assert.ok(body.equals(got.body), `another body came, of ${got.body.length} octets`);
      await got.accept();
      await close(client);
    },
    async idle() {
      const client = await open(url, HEARTBEAT);
      const queue = await named("idle", client);
      await sleep(2.5 * HEARTBEAT);
      await send(client, queue, Buffer.from("still here"), {});
      await (await get(client, queue)).accept();
      await close(client);
    },
    async restart() {
      const client = await open(url);
      const queue = await named("restart", client);
      await send(client, queue, Buffer.from("kept"), Client.durable);
      console.log("restart");
      const lines = readline.createInterface({ input: process.stdin });
      await new Promise((resolve) => lines.once("line", resolve));
      lines.close();
      let again;
      for (let tries = 0; ; tries++) {
        try { again = await open(url); break; } catch (error) { if (tries > 60) throw error; await sleep(0.2); }
      }
      await within(again.declare(queue), "declare");
      const got = await get(again, queue);
      assert.equal(got.body.toString(), "kept");
      await got.accept();
      await close(again);
    },
  };
  process.on("uncaughtException", (error) => console.error("not caught:", error));
  process.on("unhandledRejection", (error) => console.error("not handled:", error));
  for (const [name, run] of Object.entries(scenarios)) {
    let found = { scenario: name, found: "yes" };
    try {
      await run();
    } catch (error) {
      console.error(name, error);
      found = { scenario: name, found: error instanceof Absent ? "absent" : "no", why: `${error && error.name}: ${error && error.message}`.slice(0, 500) };
    }
    console.log(JSON.stringify(found));
  }
  process.exit(0);
}

module.exports = { main, Inbox, properties091, sleep };
