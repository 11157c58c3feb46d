// rhea on a link that is attached again after a cut: listen, send or receive, and say in JSON what was seen.
//     rhea_resume.js listen|send|receive MAP [PORT]
// MAP is what the program itself puts into its second attach, for rhea has nothing to put there: `none`; `held`
// (the tags of all that is unsettled, without a state); `outcome` (those that it has accepted, as accepted).
// Runs with NODE_PATH at the peers' node_modules.
'use strict';

const rhea = require('rhea');

const [mode, map, port] = process.argv.slice(2);
const container = rhea.create_container({ id: 'rhea' });
const seen = { attaches: [], messages: [], outcomes: [], error: null };
const held = new Map();
let cuts = 0;

const kept = { address: 'q', expiry_policy: 'connection-close', timeout: 60 }; // asks the peer to remember the link
const UNSETTLED = 7; // its place in an attach: rhea's own setter makes text of the keys, and tags are binary

function nameUnsettled(link) {
    if (map === 'none' || !cuts) return;
    const items = [];
    for (const [tag, state] of held) {
        items.push(rhea.types.wrap_binary(Buffer.from(tag, 'hex')));
        items.push(map === 'outcome' ? state : rhea.types.wrap(null));
    }
    link.local.attach.value[UNSETTLED] = rhea.types.Map32(items);
}

function noteAttach(link) {
    const unsettled = link.remote.attach.unsettled;
    seen.attaches.push(unsettled && Object.fromEntries(Object.entries(unsettled).map(([tag, state]) => [
        Buffer.from(tag, 'latin1').toString('hex'), state && Number(state.descriptor.value),
    ])));
}

function cut(connection) {
    cuts += 1;
    connection.socket.destroy(new Error('cut')); // with an error: its own end alone rhea does not notice
}

function finish() {
    process.stdout.write(JSON.stringify(seen) + '\n', () => process.exit(0));
}

for (const name of ['disconnected', 'connection_error', 'protocol_error']) container.on(name, () => {});
// The first of them: what rhea says of the frames behind it follows from it.
container.on('error', (error) => { seen.error = seen.error || String(error.message); });
process.on('SIGTERM', finish);
setTimeout(finish, 30000);

const tagOf = (delivery) => delivery.tag.toString('hex');

container.on('message', (context) => {
    seen.messages.push([cuts, tagOf(context.delivery), context.message.body]);
    if (cuts) return context.delivery.accept();
    held.set(tagOf(context.delivery), rhea.message.accepted().described());
    if (held.size === 2) cut(context.connection); // it has them, and nobody heard so
});

function listen() {
    container.on('receiver_open', (context) => {
        const link = context.receiver;
        noteAttach(link);
        link.set_target(link.remote.attach.target);
        link.local.attach.rcv_settle_mode = link.remote.attach.rcv_settle_mode;
        nameUnsettled(link);
    });
    const options = { credit_window: 10, autoaccept: false };
    const server = container.listen({ host: '127.0.0.1', port: 0, receiver_options: options });
    server.on('listening', () => process.stdout.write(JSON.stringify({ port: server.address().port }) + '\n'));
}

function connect() {
    return container.connect({ host: '127.0.0.1', port: Number(port), reconnect: 20, username: 'anonymous' });
}

function send() {
    const sender = connect().open_sender({ name: 'x', target: kept, rcv_settle_mode: 1, autosettle: false });
    container.once('sendable', () => {
        for (const body of ['one', 'two']) sender.send({ body });
    });
    container.on('accepted', (context) => {
        seen.outcomes.push([cuts, tagOf(context.delivery)]);
        held.set(tagOf(context.delivery), rhea.message.accepted().described());
        if (held.size !== 2 || cuts) return;
        cut(context.connection);
        nameUnsettled(sender);
    });
    container.on('sender_open', () => {
        noteAttach(sender);
        if (cuts) finish();
    });
}

function receive() {
    const receiver = connect().open_receiver({
        name: 'x', source: kept, rcv_settle_mode: 1, credit_window: 10, autoaccept: false,
    });
    container.on('disconnected', () => nameUnsettled(receiver));
    container.on('receiver_open', () => noteAttach(receiver));
}

({ listen, send, receive })[mode]();
