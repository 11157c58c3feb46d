// amqplib against a broker, one scenario at a time: node amqplib_peer.js URL SCENARIO; exits with 1 where an assertion fails.
"use strict";

const assert = require("node:assert");
const amqp = require("amqplib");
const callbacks = require("amqplib/callback_api");

const scenarios = {
  async confirms(connection) {
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    let confirmed = 0;
    for (let n = 0; n < 1000; n++) channel.sendToQueue(queue, Buffer.from(`${n}`), {}, (error) => (confirmed += !error));
    await channel.waitForConfirms();
    assert.equal(confirmed, 1000);
    assert.equal((await channel.checkQueue(queue)).messageCount, 1000);
  },

  async full_queue_refuses(connection) {
    const channel = await connection.createConfirmChannel();
    const { queue } = await channel.assertQueue("", {
      exclusive: true, maxLength: 1, arguments: { "x-overflow": "reject-publish" },
    });
    channel.sendToQueue(queue, Buffer.from("1"));
    await channel.waitForConfirms();
    channel.sendToQueue(queue, Buffer.from("2"));
    await assert.rejects(channel.waitForConfirms(), /nacked/);
  },

  async check_of_an_unknown_queue_closes_the_channel(connection) {
    const channel = await connection.createChannel();
    const failed = new Promise((resolve) => channel.on("error", resolve));
    await assert.rejects(channel.checkQueue("nobody-has-this"), /404/);
    assert.equal((await failed).code, 404);
    await (await connection.createChannel()).assertQueue("", { exclusive: true });
  },

  async other_arguments_are_refused(connection) {
    const first = await connection.createChannel();
    const { queue } = await first.assertQueue(`q-${process.pid}`, { exclusive: true });
    const channel = await connection.createChannel();
    channel.on("error", () => {});
    await assert.rejects(channel.assertQueue(queue, { exclusive: true, messageTtl: 1000 }), /406/);
  },

  async prefetch_of_consumer_and_channel(connection) {
    for (const [global, expected] of [[false, 4], [true, 2]]) {
      const channel = await connection.createChannel();
      const { queue } = await channel.assertQueue("", { exclusive: true });
      for (let n = 0; n < 10; n++) channel.sendToQueue(queue, Buffer.from(`${n}`));
      await channel.prefetch(2, global);
      let got = 0;
      await channel.consume(queue, () => got++);
      await channel.consume(queue, () => got++);
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(got, expected);
    }
  },

  async consumer_without_acknowledgements(connection) {
    const channel = await connection.createChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const got = new Promise((resolve) => channel.consume(queue, resolve, { noAck: true }));
    channel.sendToQueue(queue, Buffer.from("x"), { headers: { deep: { list: [1, "a", null] } } });
    const message = await got;
    assert.equal(message.content.toString(), "x");
    assert.deepEqual(message.properties.headers, { deep: { list: [1, "a", null] } });
    assert.equal((await channel.checkQueue(queue)).messageCount, 0);
  },

  async unroutable_message_is_returned(connection) {
    const channel = await connection.createChannel();
    const returned = new Promise((resolve) => channel.on("return", resolve));
    channel.publish("", "nobody-has-this", Buffer.from("x"), { mandatory: true });
    const message = await returned;
    assert.equal(message.fields.replyCode, 312);
    assert.equal(message.content.toString(), "x");
  },

  async cancelled_consumer_gets_null(connection) {
    const channel = await connection.createChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const cancelled = new Promise((resolve) => channel.consume(queue, resolve));
    await channel.deleteQueue(queue);
    assert.equal(await cancelled, null);
  },

  async drain_under_pressure(connection) {
    const channel = await connection.createChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const body = Buffer.alloc(10000);
    let drains = 0, sent = 0;
    while (drains < 3) {
      sent++;
      if (channel.sendToQueue(queue, body)) continue;
      await new Promise((resolve) => channel.once("drain", resolve));
      drains++;
    }
    for (let n = 0; n < 100; n++) { // RabbitMQ's count comes a little later
      if ((await channel.checkQueue(queue)).messageCount === sent) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail("not all messages came");
  },

  async recover_gives_again(connection) {
    const channel = await connection.createChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    const seen = [];
    const twice = new Promise((resolve) => channel.consume(queue, (message) => {
      seen.push(message.fields.redelivered);
      if (seen.length === 2) resolve();
    }));
    channel.sendToQueue(queue, Buffer.from("x"));
    while (!seen.length) await new Promise((resolve) => setTimeout(resolve, 10));
    await channel.recover();
    await twice;
    assert.deepEqual(seen, [false, true]);
  },

  async exchange_to_exchange(connection) {
    const channel = await connection.createChannel();
    const name = `x-${process.pid}`;
    await channel.assertExchange(`${name}-source`, "topic", { autoDelete: true });
    await channel.assertExchange(`${name}-target`, "fanout", { autoDelete: true });
    const { queue } = await channel.assertQueue("", { exclusive: true });
    await channel.bindQueue(queue, `${name}-target`, "");
    await channel.bindExchange(`${name}-target`, `${name}-source`, "a.#");
    channel.publish(`${name}-source`, "a.b", Buffer.from("x"));
    channel.publish(`${name}-source`, "b", Buffer.from("y"));
    const got = await channel.get(queue, { noAck: true });
    assert.equal(got.content.toString(), "x");
    assert.equal(await channel.get(queue), false);
  },

  async close_behind_publishes_that_wait(connection, url) {
    const other = await amqp.connect(url);
    const channel = await other.createChannel();
    const { queue } = await channel.assertQueue("", { exclusive: true });
    while (channel.sendToQueue(queue, Buffer.from("x")));
    await other.close(); // written before the publishes
  },

  async callbacks(_connection, url) {
    await new Promise((resolve, reject) => callbacks.connect(url, (error, connection) => {
      if (error) return reject(error);
      connection.createConfirmChannel((_error, channel) => channel.assertQueue("", { exclusive: true }, (_failure, ok) => {
        channel.consume(ok.queue, (message) => {
          channel.ack(message);
          connection.close((failure) => (failure ? reject(failure) : resolve()));
        });
        channel.sendToQueue(ok.queue, Buffer.from("x"));
      }));
    }));
  },

  async new_secret(connection) {
    await connection.updateSecret(Buffer.from("new"), "because");
    await connection.createChannel();
  },
};

async function main([url, name]) {
  const connection = await amqp.connect(url);
  connection.on("error", () => {});
  await scenarios[name](connection, url);
  await connection.close();
}

const late = setTimeout(() => { console.error("the scenario took too long"); process.exit(1); }, 30000);
main(process.argv.slice(2)).then(() => clearTimeout(late), (error) => { console.error(error); process.exit(1); });
