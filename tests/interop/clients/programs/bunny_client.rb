# bunny through the scenarios of the table, as scenarios.py has them: PROGRAM URL ADDRESS BARE-URL; one line of JSON for each.
require "bunny"
require "json"

MESSAGES = 200
LARGE = 1024 * 1024
URL, ADDRESS, BARE = ARGV
$stdout.sync = true

# bunny raises what ends a connection in the thread that made it: here the call that is under way reports it.
class Quiet
  def raise(*) = nil
end

class Client
  attr_reader :channel

  def initialize(url, heartbeat = 0)
    @connection = Bunny.new(url, heartbeat: heartbeat, automatically_recover: false, logger: Logger.new($stderr), connection_timeout: 10,
                        session_error_handler: Quiet.new)
    @connection.start
    @channel = @connection.create_channel
    @channel.confirm_select
  end

  def declare(name)
    queue = ADDRESS.sub("NAME", name)
    @channel.queue(queue, durable: true)
    queue
  end

  def send_all(queue, messages)
    messages.each { |body, properties| @channel.default_exchange.publish(body, { routing_key: queue, mandatory: true }.merge(properties)) }
    raise "not confirmed" unless @channel.wait_for_confirms
  end

  def get(queue)
    200.times do
      delivery, properties, body = @channel.basic_get(queue, manual_ack: true)
      return [delivery, properties, body] if delivery
      sleep 0.05
    end
    raise "no message came in 10 s"
  end

  def accept(delivery)
    @channel.ack(delivery.delivery_tag)
  end

  def close
    @connection.close
  end
end

# A boolean in an array within an array is lost: so there is none.
def properties(n)
  { content_type: "text/plain", content_encoding: "utf-8",
    headers: { "text" => "t#{n}", "number" => n, "large" => 2**40 + n, "negative" => -1 - n, "true" => true, "half" => n + 0.5,
               "list" => [1, "x", ["y"]], "table" => { "deep" => { "n" => n } }, "none" => nil },
    delivery_mode: 1 + n % 2, priority: n % 10, correlation_id: "c#{n}", reply_to: "r#{n}", expiration: (600_000 + n).to_s,
    message_id: "m#{n}", type: "y#{n}", user_id: "guest", app_id: "a#{n}" }
end

def equal(found, expected)
  raise "#{found.inspect} instead of #{expected.inspect}" unless found == expected
end

SCENARIOS = {
  with_password: -> { Client.new(URL).close },
  without_password: -> { Client.new(BARE).close },
  wrong_password: lambda {
    begin
      Client.new(URL.sub(":guest@", ":wrong@"))
    rescue Bunny::Exception
      next
    end
    raise "the client was let in"
  },
  declare: lambda {
    client = Client.new(URL)
    2.times { client.declare("declare") }
    client.close
  },
  properties: lambda {
    client = Client.new(URL)
    queue = client.declare("properties")
    client.send_all(queue, (0...MESSAGES).map { |n| ["body #{n}", properties(n)] })
    MESSAGES.times do |n|
      delivery, found, body = client.get(queue)
      equal(body, "body #{n}")
      properties(n).each { |name, value| equal([name, found[name]], [name, value]) }
      client.accept(delivery)
    end
    client.close
  },
  outcomes: lambda {
    client = Client.new(URL)
    queue = client.declare("outcomes")
    client.send_all(queue, [["x", {}]] * MESSAGES)
    MESSAGES.times { client.accept(client.get(queue)[0]) }
    client.close
  },
  requeue: lambda {
    client = Client.new(URL)
    queue = client.declare("requeue")
    client.send_all(queue, [["again", {}]])
    delivery, = client.get(queue)
    equal(delivery.redelivered, false)
    client.channel.nack(delivery.delivery_tag, false, true)
    delivery, _, body = client.get(queue)
    equal([body, delivery.redelivered], ["again", true])
    client.accept(delivery)
    client.close
  },
  large: lambda {
    client = Client.new(URL)
    queue = client.declare("large")
    large = (0..255).to_a.pack("C*") * (LARGE / 256)
    client.send_all(queue, [[large, {}]])
    delivery, _, body = client.get(queue)
    raise "another body came" unless body.b == large.b
    client.accept(delivery)
    client.close
  },
  idle: lambda {
    client = Client.new(URL, 1)
    queue = client.declare("idle")
    sleep 2.5
    client.send_all(queue, [["still here", {}]])
    client.accept(client.get(queue)[0])
    client.close
  },
  restart: lambda {
    client = Client.new(URL)
    queue = client.declare("restart")
    client.send_all(queue, [["kept", { persistent: true }]])
    puts "restart"
    $stdin.gets
    again = nil
    60.times do
      again = Client.new(URL)
      break
    rescue Bunny::Exception, SystemCallError
      sleep 0.2
    end
    again.declare("restart")
    delivery, _, body = again.get(queue)
    equal(body, "kept")
    again.accept(delivery)
    again.close
  },
}

SCENARIOS.each do |name, run|
  found = { scenario: name, found: "yes" }
  begin
    run.call
  rescue StandardError => e
    warn e.full_message
    found = { scenario: name, found: "no", why: "#{e.class}: #{e.message}"[0, 500] }
  end
  puts JSON.generate(found)
end
exit!(0)
