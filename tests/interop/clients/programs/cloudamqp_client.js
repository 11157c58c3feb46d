// @cloudamqp/amqp-client, over TCP, as a client of the table.
"use strict";
const { AMQPClient } = require("@cloudamqp/amqp-client");
const { main, Inbox, properties091 } = require("./scenarios.js");

class Client {
  static durable = { deliveryMode: 2 };
  static async open(url, heartbeat) {
    const made = new Client();
    made.connection = await new AMQPClient(`${url}/?heartbeat=${heartbeat}`).connect();
    made.connection.onerror = () => {};
    made.channel = await made.connection.channel();
    await made.channel.confirmSelect();
    made.inboxes = {};
    return made;
  }
  properties(n) { return { ...properties091(n), priority: 1 + (n % 9) }; } // it does not send a priority of 0
  async declare(queue) { await this.channel.queueDeclare(queue, { durable: true }); }
  async send(queue, body, properties) { await this.channel.basicPublish("", queue, body, properties, true); }
  async get(queue) {
    if (!this.inboxes[queue]) {
      this.inboxes[queue] = new Inbox();
      await this.channel.basicConsume(queue, { noAck: false }, (message) => this.inboxes[queue].put(message));
    }
    const message = await this.inboxes[queue].get();
    return {
      body: Buffer.from(message.body), properties: message.properties, redelivered: message.redelivered,
      accept: () => message.ack(), requeue: () => message.nack(true),
    };
  }
  async close() { await this.connection.close(); }
}

main(Client);
