// @azure/service-bus and @azure/event-hubs as clients of our stand-ins; a program of its own, one JSON line.
//
//     node azure_peer.js MODE PORT NAME KEY
//
// Both take what they dial for their development emulator: no TLS. Every connection begins with a token at $cbs.
"use strict";

const { ServiceBusClient } = require("@azure/service-bus");
const { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } = require("@azure/event-hubs");

const [mode, port, name, key] = process.argv.slice(2);
const QUEUE = "orders";
const retryOptions = { maxRetries: 0, timeoutInMs: 10000 };

function connectionString(otherKey) {
  return (
    `Endpoint=sb://127.0.0.1:${port};SharedAccessKeyName=${name};` +
    `SharedAccessKey=${otherKey || key};UseDevelopmentEmulator=true;`
  );
}

async function failure(promise) {
  try {
    await promise;
    return "it did not fail";
  } catch (error) {
    return error.code || error.name;
  }
}

// ---- Service Bus -----------------------------------------------------------------------------------------

async function one(receiver) {
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
  return message;
}

async function settle(client, said) {
  const names = ["complete", "abandon", "dead", "defer", "renew"];
  const sender = client.createSender(QUEUE);
  const batch = await sender.createMessageBatch();
  for (const each of names) {
    batch.tryAddMessage({ body: each, messageId: each, applicationProperties: { number: 1 } });
  }
  await sender.sendMessages(batch);
  const receiver = client.createReceiver(QUEUE);
  said.peeked = (await receiver.peekMessages(10)).map((message) => message.body);
  const got = {};
  while (Object.keys(got).length < names.length) {
    for (const message of await receiver.receiveMessages(5, { maxWaitTimeInMs: 5000 })) {
      got[message.body] = message;
    }
  }
  said.received = names.map((each) => [
    each,
    got[each].sequenceNumber.toNumber(),
    got[each].deliveryCount,
    got[each].applicationProperties.number,
  ]);
  await receiver.completeMessage(got.complete);
  await receiver.abandonMessage(got.abandon);
  await receiver.deadLetterMessage(got.dead, { deadLetterReason: "bad", deadLetterErrorDescription: "sour" });
  await receiver.deferMessage(got.defer);
  const before = got.renew.lockedUntilUtc;
  await new Promise((resolve) => setTimeout(resolve, 20));
  said.renewed = (await receiver.renewMessageLock(got.renew)) > before;
  await receiver.completeMessage(got.renew);
  const [deferred] = await receiver.receiveDeferredMessages(got.defer.sequenceNumber);
  said.deferred = [deferred.body, deferred.state];
  await receiver.completeMessage(deferred);
  const again = await one(receiver);
  said.again = [again.body, again.deliveryCount];
  await receiver.completeMessage(again);
  said.settledTwice = await failure(receiver.completeMessage(again));
  const graves = client.createReceiver(QUEUE, { subQueueType: "deadLetter" });
  const dead = await one(graves);
  said.dead = [dead.body, dead.deadLetterReason, dead.deadLetterErrorDescription];
  await graves.completeMessage(dead);
}

async function schedule(client, said) {
  const due = new Date(Date.now() + 1000);
  const sender = client.createSender(QUEUE);
  const numbers = await sender.scheduleMessages([{ body: "later" }, { body: "never" }], due);
  await sender.cancelScheduledMessages(numbers[1]);
  const receiver = client.createReceiver(QUEUE, { receiveMode: "receiveAndDelete" });
  const message = await one(receiver);
  said.scheduled = [message.body, new Date() >= due];
  said.none = (await receiver.receiveMessages(1, { maxWaitTimeInMs: 300 })).length;
}

async function subscribe(client, said) {
  const sender = client.createSender("prices");
  await sender.sendMessages([{ body: { price: 3 }, subject: "oil" }, { body: [1, "two"], subject: "tea" }]);
  const receiver = client.createReceiver("prices", "one");
  const got = [];
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`only ${got.length} came`)), 10000);
    receiver.subscribe({
      processMessage: async (message) => {
        got.push([message.subject, message.body]);
        if (got.length === 2) {
          clearTimeout(timer);
          resolve();
        }
      },
      processError: async (args) => reject(args.error),
    });
  });
  await receiver.close();
  said.subscribed = got;
}

async function sessions(client, said) {
  const sender = client.createSender("sessions");
  await sender.sendMessages([
    { body: "for x", sessionId: "x" },
    { body: "for y", sessionId: "y" },
  ]);
  const y = await client.acceptSession("sessions", "y");
  await y.setSessionState("state");
  said.session = [y.sessionId, await y.getSessionState()];
  const before = y.sessionLockedUntilUtc;
  await new Promise((resolve) => setTimeout(resolve, 20));
  said.sessionRenewed = (await y.renewSessionLock()) > before;
  const message = await one(y);
  said.ofY = [message.body, message.sessionId];
  await y.completeMessage(message);
  said.lockedSession = await failure(client.acceptSession("sessions", "y"));
  const next = await client.acceptNextSession("sessions");
  const other = await one(next);
  said.nextSession = [next.sessionId, other.body];
  await next.completeMessage(other);
  await next.close();
  await y.close();
}

async function rules(client, said) {
  const manager = client.createRuleManager("prices", "two");
  const listed = async () => {
    const found = [];
    for await (const rule of manager.listRules()) {
      found.push([rule.name, rule.filter.sqlExpression || rule.filter]);
    }
    return found.sort();
  };
  said.before = await listed();
  await manager.deleteRule("$Default");
  await manager.createRule("dear", { sqlExpression: "price > 100 AND sys.Label = 'oil'" });
  await manager.createRule("by-subject", { subject: "tea", applicationProperties: { fresh: true } });
  said.after = await listed();
  said.sameName = await failure(manager.createRule("dear", { sqlExpression: "1=1" }));
  said.noRule = await failure(manager.deleteRule("none"));
  said.badRule = await failure(manager.createRule("bad", { sqlExpression: "price >" }));
  const sender = client.createSender("prices");
  await sender.sendMessages([
    { body: "cheap oil", subject: "oil", applicationProperties: { price: 5 } },
    { body: "dear oil", subject: "oil", applicationProperties: { price: 500 } },
    { body: "fresh tea", subject: "tea", applicationProperties: { fresh: true } },
    { body: "old tea", subject: "tea", applicationProperties: { fresh: false } },
  ]);
  const receiver = client.createReceiver("prices", "two", { receiveMode: "receiveAndDelete" });
  said.got = [];
  for (;;) {
    const got = await receiver.receiveMessages(5, { maxWaitTimeInMs: 500 });
    if (got.length === 0) {
      break;
    }
    said.got.push(...got.map((message) => message.body));
  }
}

async function refused(said) {
  for (const [what, otherKey] of [["wrong key", "d3Jvbmc="], ["sends only", undefined]]) {
    const client = new ServiceBusClient(connectionString(otherKey), { retryOptions });
    said[what] = await failure(client.createReceiver(QUEUE).receiveMessages(1, { maxWaitTimeInMs: 500 }));
    await client.close();
  }
}

async function serviceBus(parts, said) {
  const client = new ServiceBusClient(connectionString(), { retryOptions });
  for (const part of parts) {
    await part(client, said);
  }
  await client.close();
}

// ---- Event Hubs ------------------------------------------------------------------------------------------

async function read(position, count, options) {
  const consumer = new EventHubConsumerClient("$Default", connectionString(), "clicks", { retryOptions });
  const got = [];
  const partitions = new Set();
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`only ${got.length} of ${count} came`)), 20000);
    consumer.subscribe(
      {
        processEvents: async (events, context) => {
          partitions.add(context.partitionId);
          got.push(...events.map((event) => event.body));
          if (got.length >= count) {
            clearTimeout(timer);
            resolve();
          }
        },
        processError: async (error) => reject(error),
      },
      { startPosition: position, maxWaitTimeInSeconds: 1, ...options },
    );
  });
  await consumer.close();
  return [got.sort(), [...partitions].sort()];
}

async function hubs(said) {
  const producer = new EventHubProducerClient(connectionString(), "clicks", { retryOptions });
  const properties = await producer.getEventHubProperties();
  said.hub = [properties.name, properties.partitionIds];
  const batch = await producer.createBatch({ partitionId: "0" });
  for (const number of [0, 1, 2]) {
    batch.tryAdd({ body: `zero ${number}`, properties: { number } });
  }
  await producer.sendBatch(batch);
  await producer.sendBatch([{ body: "by key" }], { partitionKey: "ada" });
  await producer.sendBatch([{ body: { a: 1 } }], { partitionId: "1" });
  const partition = await producer.getPartitionProperties("0");
  said.partition = [partition.partitionId, partition.lastEnqueuedSequenceNumber, partition.isEmpty];
  await producer.close();
  said.all = await read(earliestEventPosition, 5);
  said.behind = await read({ 0: { sequenceNumber: 1 }, 1: { isInclusive: false, offset: "@latest" } }, 2);
  const wrong = new EventHubProducerClient(connectionString("d3Jvbmc="), "clicks", { retryOptions });
  said.wrongKey = await failure(wrong.getEventHubProperties());
  await wrong.close();
}

async function main() {
  const said = {};
  const modes = {
    settle: () => serviceBus([settle, schedule, subscribe, sessions], said),
    rules: () => serviceBus([rules], said),
    refused: () => refused(said),
    hubs: () => hubs(said),
  };
  await modes[mode]();
  console.log(JSON.stringify(said));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
