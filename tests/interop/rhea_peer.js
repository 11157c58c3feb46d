// rhea as a peer: send, receive, or listen; the same modes, arguments and JSON as proton_peer.py, and the
// same arithmetic as corpus.py. Runs with NODE_PATH at the peers' node_modules.
'use strict';

const crypto = require('crypto');
const rhea = require('rhea');

// --- the corpus: see corpus.py ---

const ALPHABET = Array.from('abcdefghij 0123456789\u00e9\u00df\u0416\u2603\u20ac\u{1d11e}\n\t\'"');
const BIG = 150000;
const SMALL = 0;

class Random {
    constructor(seed, index) {
        this.state = (Math.imul(seed, 2654435761) + Math.imul(index, 40503) + 1) >>> 0 || 1;
    }
    below(limit) {
        let x = this.state;
        x = (x ^ (x << 13)) >>> 0;
        x = (x ^ (x >>> 17)) >>> 0;
        x = (x ^ (x << 5)) >>> 0;
        this.state = x;
        return x % limit;
    }
}

function item(seed, index) {
    const random = new Random(seed, index);
    let size;
    if (index % 97 === 5 && seed !== SMALL) size = BIG + random.below(50000);
    else if (index % 10 === 3) size = random.below(5000);
    else size = random.below(200);
    const units = Math.floor(size / 16);
    let unit = '';
    for (let i = 0; i < 16; i++) unit += ALPHABET[random.below(ALPHABET.length)];
    const text = unit.repeat(units) + '#' + index;
    const octets = [];
    for (let i = 0; i < 16; i++) octets.push(random.below(256));
    const last = Buffer.alloc(4);
    last.writeUInt32BE(index);
    const raw = Buffer.concat([...Array(units).fill(Buffer.from(octets)), last]);
    const properties = { index, name: 'n-' + random.below(1000000), even: index % 2 === 0 };
    const map = {
        index, text, raw,
        half: index + 0.5,
        negative: -1 - index,
        big: 2 ** 40 + index,
        flag: index % 2 === 1,
        none: null,
        items: [1, 'two', false, null],
        nested: { deep: 'd-' + index },
    };
    const body = [text, raw, map][index % 3];
    return { id: seed + '-' + index, properties, body };
}

function toMessage(one) {
    const body = Buffer.isBuffer(one.body) ? rhea.message.data_section(one.body) : one.body;
    return { message_id: one.id, application_properties: one.properties, body };
}

function canonical(value) {
    if (value === null || value === undefined) return Buffer.from('n');
    if (value === true || value === false) return Buffer.from(value ? 't' : 'f');
    if (typeof value === 'number') return Buffer.from(Number.isInteger(value) ? `i${value};` : `d${value};`);
    if (typeof value === 'string') {
        const octets = Buffer.from(value, 'utf8');
        return Buffer.concat([Buffer.from(`s${octets.length}:`), octets]);
    }
    if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from(`b${value.length}:`), value]);
    if (Array.isArray(value)) {
        return Buffer.concat([Buffer.from('['), ...value.map(canonical), Buffer.from(']')]);
    }
    if (value instanceof Date) throw new TypeError('no canonical form of a date');
    const pairs = Object.entries(value).map(([k, v]) => [canonical(k), canonical(v)]);
    pairs.sort((a, b) => Buffer.compare(a[0], b[0]));
    return Buffer.concat([Buffer.from('{'), ...pairs.flat(), Buffer.from('}')]);
}

class Digest {
    constructor() {
        this.count = 0;
        this.sha = crypto.createHash('sha256');
    }
    add(message) {
        let body = message.body;
        if (body && body.typecode === 0x75) body = body.multiple ? Buffer.concat(body.content) : body.content;
        this.count += 1;
        for (const part of [message.message_id, message.application_properties, body]) {
            this.sha.update(canonical(part));
        }
        this.sha.update('\n');
    }
    hex() {
        return this.sha.copy().digest('hex');
    }
}

// --- the modes ---

function options() {
    const result = {
        mode: process.argv[2], count: 0, seed: 1, credit: 100, deadline: 60, presettled: false, websocket: false,
        max_frame_size: 32768,
    };
    const words = process.argv.slice(3);
    while (words.length) {
        const name = words.shift().replace(/^--/, '').replace(/-/g, '_');
        if (name === 'presettled' || name === 'websocket') result[name] = true;
        else {
            const value = words.shift();
            result[name] = ['url', 'address', 'user', 'token'].includes(name) ? value : Number(value);
        }
    }
    return result;
}

const opts = options();
const container = rhea.create_container();
let failure = null;

function finish(result) {
    process.stdout.write(JSON.stringify(failure ? { ...result(), error: failure } : result()) + '\n', () => {
        process.exit(failure ? 1 : 0);
    });
}

function guard(result) {
    setTimeout(() => {
        failure = failure || `not finished after ${opts.deadline} s`;
        finish(result);
    }, opts.deadline * 1000).unref();
    const fail = (name) => (context) => {
        const at = context.receiver || context.sender || context.session || context.connection;
        failure = failure || `${name}: ${(at && at.error) || context.error || ''}`;
        finish(result);
    };
    for (const name of ['sender_error', 'receiver_error', 'session_error', 'connection_error', 'disconnected',
        'protocol_error', 'error']) {
        container.on(name, fail(name));
    }
}

function connect() {
    const url = new URL(opts.url);
    const details = {
        host: url.hostname, port: Number(url.port), reconnect: false, idle_time_out: 20000,
        max_frame_size: opts.max_frame_size,
    };
    if (url.username) {
        details.username = decodeURIComponent(url.username);
        details.password = decodeURIComponent(url.password);
    }
    if (opts.token) Object.assign(details, { username: opts.user, token: opts.token });  // XOAUTH2
    if (url.protocol === 'amqpws:') {
        const dial = container.websocket_connect(require('ws'));
        details.connection_details = dial(`ws://${url.host}${url.pathname}`, ['amqp'], {});
    }
    return container.connect(details);
}

// rhea takes credit off only when a transfer is written, so `sendable` lets us queue more than there is
// credit for, and a close would overtake what is queued.
function whenWritten(sender, then) {
    const outgoing = sender.session.outgoing;
    if (outgoing.next_pending_delivery === outgoing.next_delivery_id) then();
    else setTimeout(whenWritten, 2, sender, then);
}

function send() {
    let sent = 0;
    let settled = 0;
    const outcomes = {};
    const digest = new Digest();
    const result = () => ({ sent, outcomes, digest: digest.hex() });
    guard(result);
    const sender = connect().open_sender({ target: opts.address, snd_settle_mode: opts.presettled ? 1 : 0 });
    container.on('sendable', () => {
        while (sender.sendable() && sent < opts.count) {
            const message = toMessage(item(opts.seed, sent));
            digest.add(message);
            sender.send(message);
            sent += 1;
        }
        if (opts.presettled && sent === opts.count) whenWritten(sender, () => sender.close());
    });
    for (const name of ['accepted', 'rejected', 'released', 'modified']) {
        container.on(name, () => {
            outcomes[name] = (outcomes[name] || 0) + 1;
            settled += 1;
            if (!opts.presettled && settled === opts.count) sender.close();
        });
    }
    container.on('sender_close', (context) => context.connection.close());
    container.on('connection_close', () => finish(result));
}

function receive() {
    let settled = 0;
    const digest = new Digest();
    const result = () => ({ received: digest.count, settled, digest: digest.hex() });
    guard(result);
    const receiver = connect().open_receiver({
        source: opts.address, snd_settle_mode: opts.presettled ? 1 : 0, rcv_settle_mode: 0,
        credit_window: opts.credit, autoaccept: true,
    });
    container.on('message', (context) => {
        if (digest.count === opts.count) return;
        digest.add(context.message);
        settled += context.delivery.remote_settled ? 1 : 0;
        if (digest.count === opts.count) {
            // Closing inside this event would take the automatic accept of this very message with it.
            setImmediate(() => receiver.close());
        }
    });
    container.on('receiver_close', (context) => context.connection.close());
    container.on('connection_close', () => finish(result));
}

function listen() {
    const queues = {};
    const digests = {};
    const settled = {};
    const given = {};
    const outcomes = {};
    const senders = new Set();
    const result = () => ({
        received: Object.fromEntries(Object.entries(digests).map(([a, d]) => [a, d.count])),
        digests: Object.fromEntries(Object.entries(digests).map(([a, d]) => [a, d.hex()])),
        settled, sent: given, outcomes,
    });

    function pump(sender) {
        const address = sender.source.address;
        while (sender.is_open() && sender.sendable()) {
            let message;
            if (sender.generate) {
                if (sender.generate.next < sender.generate.count) {
                    message = toMessage(item(sender.generate.seed, sender.generate.next++));
                }
            } else message = (queues[address] || []).shift();
            if (message === undefined) return;
            sender.send(message);
            given[address] = (given[address] || 0) + 1;
        }
    }

    container.on('sender_open', (context) => {
        const sender = context.sender;
        sender.set_source(sender.remote.attach.source);
        sender.local.attach.snd_settle_mode = sender.remote.attach.snd_settle_mode;
        sender.local.attach.rcv_settle_mode = sender.remote.attach.rcv_settle_mode;
        const found = /^generate-(\d+)-(\d+)$/.exec(sender.source.address);
        if (found) sender.generate = { next: 0, count: Number(found[1]), seed: Number(found[2]) };
        senders.add(sender);
    });
    container.on('receiver_open', (context) => {
        context.receiver.set_target(context.receiver.remote.attach.target);
    });
    container.on('sender_close', (context) => senders.delete(context.sender));
    // Later, not now: where attach and flow came in one read, rhea would write transfers before its own attach.
    container.on('sendable', (context) => setImmediate(() => pump(context.sender)));
    container.on('message', (context) => {
        const address = context.receiver.target.address;
        (digests[address] = digests[address] || new Digest()).add(context.message);
        settled[address] = (settled[address] || 0) + (context.delivery.remote_settled ? 1 : 0);
        (queues[address] = queues[address] || []).push(context.message);
        for (const sender of senders) if (sender.source.address === address) pump(sender);
    });
    for (const name of ['accepted', 'rejected', 'released', 'modified']) {
        container.on(name, (context) => {
            const mine = outcomes[context.sender.source.address] = outcomes[context.sender.source.address] || {};
            mine[name] = (mine[name] || 0) + 1;
        });
    }
    // A client that leaves, however it does, is no failure of the listener.
    for (const name of ['disconnected', 'connection_error', 'error']) container.on(name, () => {});

    if (opts.websocket) {
        const server = new (require('ws').Server)({ host: '127.0.0.1', port: 0 });
        server.on('connection', (socket) => container.websocket_accept(socket, {
            max_frame_size: opts.max_frame_size,
            receiver_options: { credit_window: opts.credit, autoaccept: true },
        }));
        server.on('listening', () => {
            process.stdout.write(JSON.stringify({ port: server.address().port }) + '\n');
        });
    } else listenOnTcp();
    process.on('SIGTERM', () => finish(result));
    setTimeout(() => {
        failure = `not finished after ${opts.deadline} s`;
        finish(result);
    }, opts.deadline * 1000);
}

function listenOnTcp() {
    const server = container.listen({
        host: '127.0.0.1', port: 0, max_frame_size: opts.max_frame_size,
        receiver_options: { credit_window: opts.credit, autoaccept: true },
    });
    server.on('connection', (socket) => socket.setNoDelay(true)); // rhea leaves Nagle on for accepted sockets
    server.on('listening', () => process.stdout.write(JSON.stringify({ port: server.address().port }) + '\n'));
}

const mode = { send, receive, listen }[opts.mode];
if (!mode) {
    process.stderr.write('usage: rhea_peer.js send|receive|listen [--url U] [--address A] [--count N] ...\n');
    process.exit(2);
}
mode();
