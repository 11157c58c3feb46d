// rhea as a client of the table.
"use strict";
const rhea = require("rhea");
const { main, Inbox } = require("./scenarios.js");
const properties = require("./properties_10.js");

const once = (emitter, good, ...bad) => new Promise((resolve, reject) => {
  emitter.once(good, resolve);
  for (const name of bad) emitter.once(name, (context) => reject((context && (context.error || context[name.split("_")[0]].error)) || new Error(name)));
});

class Client {
  static durable = { durable: true };
  properties = properties;
  static async open(url, heartbeat) {
    const { hostname, port, username, password } = new URL(url);
    const made = new Client();
    const container = rhea.create_container();
    container.on("error", () => {});
    made.links = {};
    made.connection = container.connect({
      host: hostname, port, username: username || "anonymous", password: password || undefined, reconnect: false,
      idle_time_out: heartbeat ? heartbeat * 1000 : undefined,
    });
    await once(made.connection, "connection_open", "connection_error", "disconnected");
    made.connection.on("disconnected", () => {});
    return made;
  }
  async declare(queue) {
    const sender = this.connection.open_sender({ target: queue });
    await once(sender, "sendable", "sender_error");
    const inbox = new Inbox();
    const receiver = this.connection.open_receiver({ source: queue, autoaccept: false, credit_window: 1 });
    receiver.on("message", (context) => inbox.put(context));
    await once(receiver, "receiver_open", "receiver_error");
    this.links[queue] = { sender, inbox };
  }
  send(queue, body, properties) {
    const { sender } = this.links[queue];
    const done = once(sender, "accepted", "rejected", "released", "sender_error");
    sender.send({ body: rhea.message.data_section(body), ...properties });
    return done;
  }
  async get(queue) {
    const { message, delivery } = await this.links[queue].inbox.get();
    return {
      body: message.body.content, properties: message, redelivered: message.delivery_count > 0, first: message.first_acquirer,
      accept: () => delivery.accept(), requeue: () => delivery.modified({ delivery_failed: true }),
    };
  }
  async close() { this.connection.close(); await once(this.connection, "connection_close", "disconnected"); }
}

main(Client);
