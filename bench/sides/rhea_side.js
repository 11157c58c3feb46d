// rhea as one side: the same job and the same lines as the programs beside it. Runs with NODE_PATH at the peers' node_modules.
'use strict';

const fs = require('fs');
const rhea = require('rhea');

const job = JSON.parse(process.argv[2]);
const container = rhea.create_container();
const body = rhea.message.data_section(Buffer.alloc(job.size));
const settled = job.guarantee === 'at-most-once';
let span = null;

function tell(items) {
    fs.writeSync(1, JSON.stringify(items) + '\n');
}

function begin() {
    const { user, system } = process.cpuUsage();
    return { wall: process.hrtime.bigint(), processor: user + system };
}

function end(from) {
    const { user, system } = process.cpuUsage();
    const wall = Number(process.hrtime.bigint() - from.wall) / 1e9;
    tell({ result: { us: (user + system - from.processor) / job.count, 'a second': job.count / wall } });
}

function make(number) {
    if (job.message === 'bytes') return { body };
    if (job.message === 'id') return { message_id: number, body };
    return {
        durable: job.durable, message_id: number, to: 'orders', subject: 'order', reply_to: 'replies',
        correlation_id: `c-${number}`, content_type: 'application/octet-stream',
        application_properties: { number, region: 'north', urgent: true }, body,
    };
}

function read(message) {
    const octets = message.body.content;
    if (job.message === 'bytes') return octets.length;
    if (job.message === 'id') return octets.length + message.message_id;
    return octets.length + message.message_id + message.application_properties.number;
}

function send() {
    const url = new URL(job.url);
    const connection = container.connect({ host: url.hostname, port: Number(url.port), reconnect: false });
    const sender = connection.open_sender({ target: job.address, snd_settle_mode: settled ? 1 : 0 });
    let sent = 0;
    let done = 0;
    container.on('sendable', () => {
        if (span === null) {
            tell({ ready: true });
            fs.readSync(0, Buffer.alloc(16));
            span = begin();
        }
        while (sender.sendable() && sent < job.count) sender.send(make(sent++));
        if (settled && sent === job.count) whenWritten(sender);
    });
    container.on('accepted', () => {
        done += 1;
        if (done === job.count) sender.close();
    });
    container.on('sender_close', () => {
        end(span);
        connection.close();
    });
}

// A close would overtake what is queued and has no credit yet.
function whenWritten(sender) {
    const outgoing = sender.session.outgoing;
    if (outgoing.next_pending_delivery === outgoing.next_delivery_id) sender.close();
    else setTimeout(whenWritten, 2, sender);
}

function receive() {
    let seen = 0;
    let server = null;
    container.on('receiver_open', (context) => {
        context.receiver.set_target(context.receiver.remote.attach.target);
    });
    container.on('message', (context) => {
        if (seen === 0) span = begin();
        read(context.message);
        seen += 1;
        if (seen === job.count) end(span);
    });
    container.on('connection_close', () => server.close());
    container.options.receiver_options = { credit_window: job.credit, autoaccept: true };
    server = container.listen({ host: '127.0.0.1', port: 0 });
    server.on('listening', () => tell({ url: `amqp://127.0.0.1:${server.address().port}` }));
}

container.on('disconnected', () => process.exit(1));
if (job.role === 'send') send();
else receive();
