// @sap/xb-msg-amqp-v100 as a client of the table.
"use strict";
const { Client: Amqp } = require("@sap/xb-msg-amqp-v100");
const { main, Inbox } = require("./scenarios.js");

class Client {
  static durable = { header: { durable: true } };
  static onlyReleases = true; // which counts no attempt (3.4.4)
  static open(url, heartbeat) {
    const { hostname, port, username, password } = new URL(url);
    const made = new Client();
    made.links = {};
    made.client = new Amqp({
      net: { host: hostname, port: Number(port) },
      sasl: username ? { mechanism: "PLAIN", user: username, password } : { mechanism: "ANONYMOUS" },
      amqp: heartbeat ? { idleTimeoutMilliseconds: heartbeat * 1000, idleTimeoutTryKeepAlive: true } : {},
    });
    return new Promise((resolve, reject) => {
      made.client
        .on("connected", () => resolve(made))
        .on("error", (error) => reject(error))
        .on("assert", (error) => reject(error))
        .on("disconnected", () => reject(new Error("disconnected")));
      made.client.connect();
    });
  }
  properties(n) {
    return {
      header: { durable: true, priority: 5 },
      properties: { messageID: `id-${n}`, userID: Buffer.from("guest"), contentEncoding: "utf-8", absoluteExpiryTime: 4000000000000 + n, creationTime: 1000000000000 + n, subject: `s${n}`, replyTo: `r${n}`, correlationID: `c${n}`, groupID: `g${n}`, groupSequence: n, replyToGroupID: `h${n}` },
      application: { text: `t${n}`, number: n, negative: -1 - n, true: true, half: n + 0.5 },
      type: "text/plain",
    };
  }
  async declare(queue) {
    if (this.links[queue]) return;
    const stream = this.client.sender(`out-${queue}`).attach(queue);
    await new Promise((resolve, reject) => stream.once("ready", resolve).once("error", reject));
    const inbox = new Inbox();
    const incoming = this.client.receiver(`in-${queue}`).attach(queue);
    await new Promise((resolve, reject) => incoming.once("subscribed", resolve).once("error", reject));
    incoming.on("data", (message) => inbox.put(message));
    this.links[queue] = { stream, inbox };
  }
  send(queue, body, { application, type, ...target }) {
    return new Promise((resolve, reject) => {
      this.links[queue].stream.write({ payload: { chunks: [body], type, properties: application }, target, done: resolve, failed: (error) => reject(error || new Error("released")) });
    });
  }
  async get(queue) {
    const message = await this.links[queue].inbox.get();
    const header = message.source.header || {}, properties = message.source.properties || {};
    const sent = this.properties(0).properties;
    return {
      body: Buffer.concat(message.payload.chunks),
      properties: {
        header: { durable: header.durable, priority: header.priority },
        properties: Object.fromEntries(Object.keys(sent).map((name) => [name, properties[name] instanceof Date ? Number(properties[name]) : properties[name]])),
        application: { ...message.payload.properties }, type: message.payload.type,
      },
      redelivered: header.deliveryCount > 0, first: header.firstAcquirer, accept: () => message.done(), requeue: () => message.failed(),
    };
  }
  close() { return new Promise((resolve) => { this.client.removeAllListeners("disconnected"); this.client.on("disconnected", resolve); this.client.disconnect(); }); }
}

main(Client);
