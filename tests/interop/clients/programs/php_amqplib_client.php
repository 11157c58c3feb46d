<?php
// php-amqplib through the scenarios of the table, as scenarios.py has them: PROGRAM URL ADDRESS BARE-URL; one line of JSON for each.
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

error_reporting(E_ALL & ~E_DEPRECATED);
const MESSAGES = 200;
const LARGE = 1024 * 1024;
[, $url, $address, $bare] = $argv;

class Client
{
    public $connection;
    public $channel;

    public function __construct(string $url, int $heartbeat = 0)
    {
        $at = parse_url($url);
        $this->connection = new AMQPStreamConnection(
            $at['host'], $at['port'], $at['user'] ?? 'guest', $at['pass'] ?? 'guest', '/', false, 'PLAIN', null, 'en_US', 10.0, 10.0, null, false, $heartbeat
        );
        $this->channel = $this->connection->channel();
        $this->channel->confirm_select();
    }

    public function declare(string $name): string
    {
        global $address;
        $queue = str_replace('NAME', $name, $address);
        $this->channel->queue_declare($queue, false, true, false, false);
        return $queue;
    }

    public function send(string $queue, array $messages): void
    {
        $refused = 0;
        $this->channel->set_nack_handler(function () use (&$refused) { $refused++; });
        foreach ($messages as [$body, $properties]) {
            $this->channel->basic_publish(new AMQPMessage($body, $properties), '', $queue, true);
        }
        $this->channel->wait_for_pending_acks_returns(10);
        if ($refused) throw new Exception("$refused messages were not confirmed");
    }

    public function get(string $queue): AMQPMessage
    {
        for ($i = 0; $i < 200; $i++) {
            $message = $this->channel->basic_get($queue);
            if ($message) return $message;
            usleep(50000);
        }
        throw new Exception('no message came in 10 s');
    }

    public function close(): void
    {
        $this->connection->close();
    }
}

function properties(int $n): array
{
    return [
        'content_type' => 'text/plain', 'content_encoding' => 'utf-8',
        'application_headers' => [
            'text' => "t$n", 'number' => $n, 'large' => 2 ** 40 + $n, 'negative' => -1 - $n, 'true' => true, 'half' => $n + 0.5,
            'list' => [1, 'x', [true]], 'table' => ['deep' => ['n' => $n]], 'none' => null,
        ],
        'delivery_mode' => 1 + $n % 2, 'priority' => $n % 10, 'correlation_id' => "c$n", 'reply_to' => "r$n", 'expiration' => (string)(600000 + $n),
        'message_id' => "m$n", 'timestamp' => 1000000000 + $n, 'type' => "y$n", 'user_id' => 'guest', 'app_id' => "a$n",
    ];
}

function equal($found, $expected): void
{
    if ($found != $expected) throw new Exception(json_encode($found) . ' instead of ' . json_encode($expected));
}

$scenarios = [
    'with_password' => function () use ($url) { (new Client($url))->close(); },
    'without_password' => function () use ($bare) { (new Client($bare))->close(); },
    'wrong_password' => function () use ($url) {
        try {
            new Client(str_replace(':guest@', ':wrong@', $url));
        } catch (Exception $refused) {
            return;
        }
        throw new Error('the client was let in');
    },
    'declare' => function () use ($url) {
        $client = new Client($url);
        $client->declare('declare');
        $client->declare('declare');
        $client->close();
    },
    'properties' => function () use ($url) {
        $client = new Client($url);
        $queue = $client->declare('properties');
        $messages = [];
        for ($n = 0; $n < MESSAGES; $n++) {
            $properties = properties($n);
            $properties['application_headers'] = new AMQPTable($properties['application_headers']);
            $messages[] = ["body $n", $properties];
        }
        $client->send($queue, $messages);
        for ($n = 0; $n < MESSAGES; $n++) {
            $message = $client->get($queue);
            equal($message->getBody(), "body $n");
            $found = $message->get_properties();
            $found['application_headers'] = $found['application_headers']->getNativeData();
            foreach (properties($n) as $name => $value) equal([$name, $found[$name]], [$name, $value]);
            $message->ack();
        }
        $client->close();
    },
    'outcomes' => function () use ($url) {
        $client = new Client($url);
        $queue = $client->declare('outcomes');
        $client->send($queue, array_fill(0, MESSAGES, ['x', []]));
        for ($n = 0; $n < MESSAGES; $n++) $client->get($queue)->ack();
        $client->close();
    },
    'requeue' => function () use ($url) {
        $client = new Client($url);
        $queue = $client->declare('requeue');
        $client->send($queue, [['again', []]]);
        $first = $client->get($queue);
        equal($first->isRedelivered(), false);
        $first->nack(true);
        $second = $client->get($queue);
        equal([$second->getBody(), $second->isRedelivered()], ['again', true]);
        $second->ack();
        $client->close();
    },
    'large' => function () use ($url) {
        $client = new Client($url);
        $queue = $client->declare('large');
        $body = str_repeat(implode(array_map('chr', range(0, 255))), LARGE / 256);
        $client->send($queue, [[$body, []]]);
        $message = $client->get($queue);
        if ($message->getBody() !== $body) throw new Exception('another body came');
        $message->ack();
        $client->close();
    },
    'idle' => function () use ($url) {
        $client = new Client($url, 1);
        $queue = $client->declare('idle');
        for ($i = 0; $i < 10; $i++) {
            usleep(250000);
            $client->connection->checkHeartBeat();
        }
        $client->send($queue, [['still here', []]]);
        $client->get($queue)->ack();
        $client->close();
    },
    'restart' => function () use ($url) {
        $client = new Client($url);
        $queue = $client->declare('restart');
        $client->send($queue, [['kept', ['delivery_mode' => 2]]]);
        echo "restart\n";
        fgets(STDIN);
        for ($i = 0; ; $i++) {
            try {
                $again = new Client($url);
                break;
            } catch (Exception $refused) {
                if ($i > 60) throw $refused;
                usleep(200000);
            }
        }
        $again->declare('restart');
        $message = $again->get($queue);
        equal($message->getBody(), 'kept');
        $message->ack();
        $again->close();
    },
];

foreach ($scenarios as $name => $run) {
    $found = ['scenario' => $name, 'found' => 'yes'];
    try {
        $run();
    } catch (Throwable $fault) {
        fwrite(STDERR, "$name: $fault\n");
        $found = ['scenario' => $name, 'found' => 'no', 'why' => substr(get_class($fault) . ': ' . $fault->getMessage(), 0, 500)];
    }
    echo json_encode($found, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
}
