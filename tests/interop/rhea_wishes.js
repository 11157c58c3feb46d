// rhea as a client with wishes: a selector on a source, a reply node that is made for it; and as a listener with
// PLAIN. Prints one line of JSON. Arguments: select PORT | request PORT | plain. Runs with NODE_PATH at the peers' modules.
'use strict';

const rhea = require('rhea');

const [mode, port] = process.argv.slice(2);

function say(value, end) {
    process.stdout.write(JSON.stringify(value) + '\n');
    if (end) end.close();
}

if (mode === 'select') {
    const bodies = [];
    rhea.on('message', (context) => {
        bodies.push(context.message.body);
        if (bodies.length === 2) say({ bodies }, context.connection);
    });
    const connection = rhea.connect({ port: Number(port), host: '127.0.0.1', reconnect: false });
    connection.open_receiver({ source: { address: 'colours', filter: rhea.filter.selector("colour = 'green'") } });
} else if (mode === 'request') {
    let sender, reply;
    rhea.on('receiver_open', (context) => {
        sender = context.connection.open_sender('upper');
        reply = context.receiver.source.address;
    });
    rhea.once('sendable', () => sender.send({ body: 'hello', reply_to: reply, correlation_id: 7 }));
    rhea.on('message', (context) => {
        const { body, correlation_id } = context.message;
        say({ body, correlation_id, dynamic: Boolean(reply) }, context.connection);
    });
    rhea.connect({ port: Number(port), host: '127.0.0.1', reconnect: false })
        .open_receiver({ source: { dynamic: true } });
} else {
    const users = [];
    rhea.sasl_server_mechanisms.enable_plain((user, password) => {
        users.push(user);
        return password === 'enigma';
    });
    const server = rhea.listen({ port: 0, host: '127.0.0.1' });
    server.on('listening', () => say({ port: server.address().port }));
    rhea.on('receiver_open', ({ receiver }) => receiver.set_target(receiver.remote.attach.target));
    rhea.on('message', (context) => say({ users, body: context.message.body }));
    rhea.on('disconnected', () => {});
    rhea.on('connection_close', () => {});
    process.on('SIGTERM', () => process.exit(0));
}
