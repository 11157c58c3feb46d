// amqp10 as a client of the table.
"use strict";
const { Client: Amqp, Policy } = require("amqp10");
const { main, Inbox } = require("./scenarios.js");

class Client {
  static durable = { header: { durable: true } };
  // Messages are settled by itself as they come, unless it asks for rcv-settle-mode second: then by the program.
  static async open(url, heartbeat, requeues) {
    const made = new Client();
    made.links = {};
    made.requeues = requeues;
    made.client = new Amqp(Policy.merge({
      reconnect: { retries: 0, forever: false },
      defaultSubjects: false,
      session: { options: { outgoingWindow: 1000000 } }, // it counts down and never opens again: a flow after it is negative cannot be written
      connect: { options: heartbeat ? { idleTimeout: heartbeat * 1000 } : {}, saslMechanism: new URL(url).username ? null : "ANONYMOUS" },
      senderLink: { reattach: null },
      receiverLink: { reattach: null, attach: { receiverSettleMode: requeues ? 1 : 0, maxMessageSize: 2 ** 24 } },
    }, Policy.Default));
    made.client.on("client:errorReceived", () => {});
    await made.client.connect(url);
    return made;
  }
  properties(n) {
    return {
      header: { durable: true, priority: 5 },
      properties: {
        messageId: `id-${n}`, userId: Buffer.from("guest"), subject: `s${n}`, replyTo: `r${n}`, correlationId: `c${n}`, contentType: "text/plain",
        contentEncoding: "utf-8", absoluteExpiryTime: new Date(4000000000000 + n), creationTime: new Date(1000000000000 + n),
        groupId: `g${n}`, groupSequence: n, replyToGroupId: `h${n}`,
      },
      applicationProperties: { text: `t${n}`, number: n, large: 2 ** 40 + n, negative: -1 - n, true: true, half: n + 0.5 },
      messageAnnotations: { "x-opt-note": `a${n}` },
    };
  }
  async declare(queue) {
    if (this.links[queue]) await this.attach(queue);
    else {
      const sender = await this.client.createSender(queue);
      sender.on("errorReceived", () => {});
      this.links[queue] = { sender };
    }
  }
  // Not before it is needed: it settles what comes. And no credit before somebody listens: what came until then would be gone.
  async attach(queue) {
    let listens = false;
    const refresh = Policy.Utils.CreditPolicies.RefreshAtHalf;
    const receiver = await this.client.createReceiver(queue, { credit: (link) => listens && refresh(link) });
    const inbox = new Inbox();
    receiver.on("message", (message) => inbox.put(message));
    receiver.on("errorReceived", () => {});
    listens = true;
    receiver.addCredits(receiver.policy.creditQuantum);
    Object.assign(this.links[queue], { receiver, inbox });
  }
  async send(queue, body, parts) { await this.links[queue].sender.send({ ...parts, body }); }
  async get(queue) {
    if (!this.links[queue].receiver) await this.attach(queue);
    const { receiver, inbox } = this.links[queue];
    const message = await inbox.get();
    const header = message.header || {};
    const found = { ...message, header: { durable: header.durable, priority: header.priority } };
    if (found.properties) found.properties = Object.fromEntries(Object.entries(found.properties).filter(([name]) => name !== "to"));
    return {
      body: message.body, properties: found, redelivered: header.deliveryCount > 0, first: header.firstAcquirer,
      accept: () => this.requeues && receiver.accept(message), requeue: () => receiver.modify(message, { deliveryFailed: true }),
    };
  }
  async close() { await this.client.disconnect(); }
}

main(Client);
