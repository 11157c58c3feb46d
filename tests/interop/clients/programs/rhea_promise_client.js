// rhea-promise as a client of the table.
"use strict";
const { Connection, ReceiverEvents, message: parts } = require("rhea-promise");
const { main, Inbox } = require("./scenarios.js");
const properties = require("./properties_10.js");

class Client {
  static durable = { durable: true };
  properties = properties;
  static async open(url, heartbeat) {
    const { hostname, port, username, password } = new URL(url);
    const made = new this();
    made.links = {};
    made.connection = new Connection({
      host: hostname, hostname, port: Number(port), username: username || "anonymous", password: password || undefined, reconnect: false,
      idle_time_out: heartbeat ? heartbeat * 1000 : undefined, operationTimeoutInSeconds: 10,
    });
    await made.begin();
    return made;
  }
  async begin() { await this.connection.open(); }
  async declare(queue) {
    const sender = await this.connection.createAwaitableSender({ target: { address: queue } });
    const inbox = new Inbox();
    const receiver = await this.connection.createReceiver({ source: { address: queue }, autoaccept: false, credit_window: 1, onMessage: (context) => inbox.put(context), onError: () => {} });
    receiver.on(ReceiverEvents.receiverError, () => {});
    this.links[queue] = { sender, inbox };
  }
  async send(queue, body, properties) {
    const { sender } = this.links[queue];
    while (!sender.sendable()) await new Promise((resolve) => setTimeout(resolve, 5));
    await sender.send({ body: parts.data_section(body), ...properties });
  }
  async get(queue) {
    const { message, delivery } = await this.links[queue].inbox.get();
    return {
      body: message.body.content, properties: message, redelivered: message.delivery_count > 0, first: message.first_acquirer,
      accept: () => delivery.accept(), requeue: () => delivery.modified({ delivery_failed: true }),
    };
  }
  async close() { await this.connection.close(); }
}

module.exports = { Client };
if (require.main === module) main(Client);
