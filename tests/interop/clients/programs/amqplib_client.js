// amqplib as a client of the table.
"use strict";
const amqp = require("amqplib");
const { main, Inbox, properties091 } = require("./scenarios.js");

class Client {
  static durable = { deliveryMode: 2 };
  properties = properties091;
  static async open(url, heartbeat) {
    const made = new Client();
    made.connection = await amqp.connect(`${url}/?heartbeat=${heartbeat}`);
    made.connection.on("error", () => {});
    made.channel = await made.connection.createConfirmChannel();
    made.channel.on("error", () => {});
    made.inboxes = {};
    return made;
  }
  async declare(queue) { await this.channel.assertQueue(queue, { durable: true }); }
  async send(queue, body, properties) {
    await new Promise((resolve, reject) =>
      this.channel.sendToQueue(queue, body, { mandatory: true, ...properties }, (error) => (error ? reject(error) : resolve())));
  }
  async get(queue) {
    if (!this.inboxes[queue]) {
      this.inboxes[queue] = new Inbox();
      await this.channel.consume(queue, (message) => message && this.inboxes[queue].put(message));
    }
    const message = await this.inboxes[queue].get();
    return {
      body: message.content, properties: message.properties, redelivered: message.fields.redelivered,
      accept: () => this.channel.ack(message), requeue: () => this.channel.nack(message),
    };
  }
  async close() { await this.connection.close(); }
}

main(Client);
