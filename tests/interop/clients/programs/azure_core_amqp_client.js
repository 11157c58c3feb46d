// @azure/core-amqp, on rhea-promise, as a client of the table: its connection, its retries and its form of a message.
"use strict";
const { AmqpAnnotatedMessage, retry, RetryOperationType } = require("@azure/core-amqp");
const { message: parts } = require("rhea-promise");
const { main, Inbox } = require("./scenarios.js");
const { Client: Base } = require("./rhea_promise_client.js");
const properties = require("./properties_10.js");

class Client extends Base {
  properties = (n) => { const { user_id, ...rest } = properties(n); return rest; }; // its form of a message has no user-id
  begin() { return this._retry(RetryOperationType.connection, () => this.connection.open()); }
  _retry(operationType, operation) {
    return retry({ operation, operationType, connectionId: "clients", retryOptions: { maxRetries: 0, timeoutInMs: 10000 } });
  }
  async declare(queue) {
    const sender = await this._retry(RetryOperationType.senderLink, () => this.connection.createAwaitableSender({ target: { address: queue } }));
    const inbox = new Inbox();
    await this._retry(RetryOperationType.receiverLink, () =>
      this.connection.createReceiver({ source: { address: queue }, autoaccept: false, credit_window: 1, onMessage: (context) => inbox.put(context), onError: () => {} }));
    this.links[queue] = { sender, inbox };
  }
  async send(queue, body, properties) {
    const { sender } = this.links[queue];
    while (!sender.sendable()) await new Promise((resolve) => setTimeout(resolve, 5));
    const annotated = AmqpAnnotatedMessage.fromRheaMessage({ body: parts.data_section(body), ...properties });
    annotated.body = parts.data_section(body);
    await this._retry(RetryOperationType.sendMessage, () => sender.send(AmqpAnnotatedMessage.toRheaMessage(annotated)));
  }
}

main(Client);
