// RabbitMQ's client for Java, one scenario at a time: java JavaPeer.java URL SCENARIO [CAFILE]; exits with 1 where an assertion
// fails. With a file of authorities, the certificate of the broker has to be by one of them, and for the host of the URL.
// Each public method is a scenario; one whose name ends in after_a_restart has the broker restarted meanwhile.

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.ReturnListener;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public class JavaPeer {
  static final long SECONDS = 20;
  static String authorities;

  // -- what the scenarios share

  interface Call {
    void run() throws Exception;
  }

  static void check(boolean holds, Object found) {
    if (!holds) throw new AssertionError(String.valueOf(found));
  }

  static void equal(Object found, Object expected) {
    check(expected == null ? found == null : expected.equals(found), found + " is not " + expected);
  }

  static ConnectionFactory factory(String url) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(url);
    factory.setAutomaticRecoveryEnabled(false);
    if (authorities != null) checkCertificates(factory);
    return factory;
  }

  static void checkCertificates(ConnectionFactory factory) throws Exception {
    KeyStore believed = KeyStore.getInstance(KeyStore.getDefaultType());
    believed.load(null, null);
    try (InputStream file = new FileInputStream(authorities)) {
      for (Certificate each : CertificateFactory.getInstance("X.509").generateCertificates(file))
        believed.setCertificateEntry("authority " + believed.size(), each);
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(believed);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    factory.useSslProtocol(context);
    factory.setSocketConfigurator(
        socket -> {
          socket.setTcpNoDelay(true);
          SSLParameters parameters = ((SSLSocket) socket).getSSLParameters();
          parameters.setEndpointIdentificationAlgorithm("HTTPS"); // the name in the certificate
          ((SSLSocket) socket).setSSLParameters(parameters);
        });
  }

  static Connection connect(String url) throws Exception {
    return factory(url).newConnection();
  }

  static String ownQueue(Channel channel) throws IOException {
    return channel.queueDeclare("", false, true, false, null).getQueue();
  }

  static byte[] octets(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] body) {
    return new String(body, StandardCharsets.UTF_8);
  }

  /** The shutdown in an exception or its causes. */
  static ShutdownSignalException shutdown(Throwable failure) {
    while (failure != null && !(failure instanceof ShutdownSignalException)) failure = failure.getCause();
    check(failure != null, "no shutdown");
    return (ShutdownSignalException) failure;
  }

  /** The code with which the broker closed a channel, or the connection if hard. */
  static int code(Call call, boolean hard) throws Exception {
    try {
      call.run();
    } catch (IOException | ShutdownSignalException failure) {
      ShutdownSignalException shutdown = shutdown(failure);
      equal(shutdown.isHardError(), hard);
      Method reason = shutdown.getReason();
      return hard ? ((AMQP.Connection.Close) reason).getReplyCode() : ((AMQP.Channel.Close) reason).getReplyCode();
    }
    throw new AssertionError("nothing was refused");
  }

  /** Waits until a queue has so many messages ready. */
  static void ready(Channel channel, String queue, int count) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    while (channel.messageCount(queue) != count) {
      check(System.nanoTime() < deadline, channel.messageCount(queue) + " messages, not " + count);
      Thread.sleep(20);
    }
  }

  static class Delivered {
    Envelope envelope;
    AMQP.BasicProperties properties;
    String body;
  }

  static class Taking extends DefaultConsumer {
    final BlockingQueue<Delivered> found = new LinkedBlockingQueue<>();
    final CountDownLatch cancelled = new CountDownLatch(1);

    Taking(Channel channel) {
      super(channel);
    }

    @Override
    public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
      Delivered one = new Delivered();
      one.envelope = envelope;
      one.properties = properties;
      one.body = text(body);
      found.add(one);
    }

    @Override
    public void handleCancel(String tag) {
      cancelled.countDown();
    }

    Delivered next() throws InterruptedException {
      Delivered one = found.poll(SECONDS, TimeUnit.SECONDS);
      check(one != null, "no delivery came");
      return one;
    }

    void none() throws InterruptedException {
      check(found.poll(300, TimeUnit.MILLISECONDS) == null, "one delivery too many");
    }
  }

  // -- publishing

  public static void confirms(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      channel.confirmSelect();
      equal(channel.getNextPublishSeqNo(), 1L);
      for (int n = 0; n < 1000; n++) channel.basicPublish("", queue, null, octets("" + n));
      check(channel.waitForConfirms(SECONDS * 1000), "a publish was refused");
      equal(channel.messageCount(queue), 1000L);
      Map<String, Object> arguments = new HashMap<>();
      arguments.put("x-max-length", 1);
      arguments.put("x-overflow", "reject-publish");
      String full = channel.queueDeclare("", false, true, true, arguments).getQueue();
      channel.basicPublish("", full, null, octets("1"));
      channel.waitForConfirmsOrDie(SECONDS * 1000);
      channel.basicPublish("", full, null, octets("2"));
      check(!channel.waitForConfirms(SECONDS * 1000), "a full queue took a message");
    }
  }

  public static void mandatory_publish_is_returned(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      BlockingQueue<List<Object>> returned = new LinkedBlockingQueue<>();
      ReturnListener listener =
          (code, reason, exchange, key, properties, body) ->
              returned.add(Arrays.asList(code, reason, exchange, key, properties.getMessageId(), text(body)));
      channel.addReturnListener(listener);
      channel.confirmSelect();
      AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().messageId("m").build();
      channel.basicPublish("amq.direct", "nobody-is-bound", true, properties, octets("tea"));
      channel.waitForConfirmsOrDie(SECONDS * 1000);
      List<Object> found = returned.poll(SECONDS, TimeUnit.SECONDS);
      equal(found, Arrays.asList(312, "NO_ROUTE", "amq.direct", "nobody-is-bound", "m", "tea"));
    }
  }

  public static void properties_and_headers_come_back(String url) throws Exception {
    Map<String, Object> deep = new HashMap<>();
    deep.put("n", 1);
    deep.put("none", null);
    Map<String, Object> headers = new HashMap<>();
    headers.put("text", "t\u00e9");
    headers.put("boolean", true);
    headers.put("byte", (byte) -3);
    headers.put("short", (short) -300);
    headers.put("int", -70_000);
    headers.put("long", -(1L << 40));
    headers.put("float", 1.5f);
    headers.put("double", -2.25);
    headers.put("decimal", new BigDecimal("12.34"));
    headers.put("date", new Date(1_700_000_000_000L));
    headers.put("octets", new byte[] {0, (byte) 0xff});
    headers.put("null", null);
    headers.put("table", deep);
    headers.put("list", Arrays.asList(1, 2L, true));
    AMQP.BasicProperties sent =
        new AMQP.BasicProperties(
            "text/plain", "utf-8", headers, 2, 7, "correlation", "reply", "60000", "id",
            new Date(1_600_000_000_000L), "type", "guest", "application", null);
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      channel.basicPublish("", queue, sent, new byte[0]);
      GetResponse got = channel.basicGet(queue, true);
      AMQP.BasicProperties found = got.getProps();
      equal(found.getContentType(), sent.getContentType());
      equal(found.getContentEncoding(), sent.getContentEncoding());
      equal(found.getDeliveryMode(), sent.getDeliveryMode());
      equal(found.getPriority(), sent.getPriority());
      equal(found.getCorrelationId(), sent.getCorrelationId());
      equal(found.getReplyTo(), sent.getReplyTo());
      equal(found.getExpiration(), sent.getExpiration());
      equal(found.getMessageId(), sent.getMessageId());
      equal(found.getTimestamp(), sent.getTimestamp());
      equal(found.getType(), sent.getType());
      equal(found.getUserId(), sent.getUserId());
      equal(found.getAppId(), sent.getAppId());
      equal(found.getHeaders().keySet(), headers.keySet());
      for (Map.Entry<String, Object> each : found.getHeaders().entrySet()) {
        Object expected = headers.get(each.getKey());
        Object value = each.getValue();
        if (value instanceof LongString) value = value.toString();
        if (expected instanceof byte[]) check(Arrays.equals((byte[]) value, (byte[]) expected), each.getKey());
        else equal(value, expected);
        if (expected != null && !(value instanceof List) && !(value instanceof Map)) {
          equal(value.getClass(), expected.getClass());
        }
      }
    }
  }

  public static void large_body_in_small_frames(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setRequestedFrameMax(4096);
    try (Connection connection = factory.newConnection()) {
      equal(connection.getFrameMax(), 4096);
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      byte[] body = new byte[1024 * 1024 + 1];
      for (int n = 0; n < body.length; n++) body[n] = (byte) n;
      channel.basicPublish("", queue, null, body);
      check(Arrays.equals(channel.basicGet(queue, true).getBody(), body), "another body came");
    }
  }

  // -- consuming

  public static void prefetch_and_acknowledgements(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      for (int n = 1; n <= 6; n++) channel.basicPublish("", queue, null, octets("" + n));
      channel.basicQos(2);
      Taking consumer = new Taking(channel);
      String tag = channel.basicConsume(queue, false, consumer);
      Delivered first = consumer.next();
      Delivered second = consumer.next();
      equal(Arrays.asList(first.body, second.body), Arrays.asList("1", "2"));
      check(!first.envelope.isRedeliver(), "it was never delivered before");
      consumer.none();
      channel.basicAck(second.envelope.getDeliveryTag(), true);
      Delivered third = consumer.next();
      Delivered fourth = consumer.next();
      equal(Arrays.asList(third.body, fourth.body), Arrays.asList("3", "4"));
      channel.basicReject(third.envelope.getDeliveryTag(), false);
      equal(consumer.next().body, "5");
      channel.basicNack(fourth.envelope.getDeliveryTag(), false, true);
      Delivered again = consumer.next();
      equal(again.body, "4");
      check(again.envelope.isRedeliver(), "it was delivered before");
      channel.basicCancel(tag);
      channel.basicRecover(true);
      ready(channel, queue, 3);
      List<String> left = new ArrayList<>();
      for (int n = 0; n < 3; n++) {
        GetResponse got = channel.basicGet(queue, true);
        equal(got.getMessageCount(), 2 - n);
        left.add(text(got.getBody()));
      }
      equal(left, Arrays.asList("4", "5", "6"));
      equal(channel.basicGet(queue, true), null);
    }
  }

  public static void consumer_without_acknowledgements(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      Taking consumer = new Taking(channel);
      channel.basicConsume(queue, true, "own-tag", consumer);
      for (int n = 0; n < 500; n++) channel.basicPublish("", queue, null, octets("" + n));
      for (int n = 0; n < 500; n++) equal(consumer.next().body, "" + n);
      channel.basicCancel("own-tag");
      equal(channel.messageCount(queue), 0L);
    }
  }

  public static void deleted_queue_cancels_its_consumer(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      Taking consumer = new Taking(channel);
      channel.basicConsume(queue, false, consumer);
      connection.createChannel().queueDelete(queue);
      check(consumer.cancelled.await(SECONDS, TimeUnit.SECONDS), "the consumer was not cancelled");
      check(channel.isOpen(), "the channel is closed");
    }
  }

  public static void exchanges_route(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      String queue = ownQueue(channel);
      String topic = "java-topic-" + queue;
      channel.exchangeDeclare(topic, "topic", false, true, null);
      channel.queueBind(queue, topic, "eu.*.tea");
      channel.basicPublish(topic, "eu.uk.tea", null, octets("1"));
      channel.basicPublish(topic, "eu.uk.coffee", null, octets("2"));
      String headers = "java-headers-" + queue;
      channel.exchangeDeclare(headers, "headers", false, true, null);
      Map<String, Object> match = new HashMap<>();
      match.put("x-match", "any");
      match.put("leaf", "green");
      match.put("cups", 2);
      channel.queueBind(queue, headers, "", match);
      Map<String, Object> sent = new HashMap<>();
      sent.put("cups", 2);
      channel.basicPublish(headers, "", new AMQP.BasicProperties.Builder().headers(sent).build(), octets("3"));
      channel.exchangeBind(headers, topic, "to.headers");
      channel.basicPublish(topic, "to.headers", new AMQP.BasicProperties.Builder().headers(sent).build(), octets("4"));
      ready(channel, queue, 3);
      for (String body : new String[] {"1", "3", "4"}) equal(text(channel.basicGet(queue, true).getBody()), body);
    }
  }

  // -- transactions

  public static void transaction(String url) throws Exception {
    try (Connection connection = connect(url)) {
      Channel channel = connection.createChannel();
      Channel other = connection.createChannel();
      String queue = ownQueue(channel);
      channel.txSelect();
      channel.basicPublish("", queue, null, octets("dropped"));
      channel.txRollback();
      channel.basicPublish("", queue, null, octets("kept"));
      equal(other.messageCount(queue), 0L);
      channel.txCommit();
      ready(other, queue, 1);
      GetResponse got = channel.basicGet(queue, false);
      equal(text(got.getBody()), "kept");
      channel.basicAck(got.getEnvelope().getDeliveryTag(), false);
      channel.txRollback();
      channel.basicAck(got.getEnvelope().getDeliveryTag(), false);
      channel.txCommit();
      channel.close();
      equal(other.messageCount(queue), 0L);
    }
  }

  // -- errors

  public static void channels_close_with_codes(String url) throws Exception {
    try (Connection connection = connect(url)) {
      String queue = ownQueue(connection.createChannel());
      equal(code(() -> connection.createChannel().queueDeclarePassive("nobody-has-this"), false), 404);
      equal(code(() -> connection.createChannel().queueDeclare(queue, false, true, false, null), false), 403);
      String named = "java-" + queue;
      connection.createChannel().queueDeclare(named, false, true, false, null);
      connection.createChannel().queueDeclare(named, false, true, false, null);
      equal(code(() -> connection.createChannel().queueDeclare(named, false, true, true, null), false), 406);
      equal(code(() -> connection.createChannel().queueDeclare("amq.mine", false, true, true, null), false), 403);
      equal(code(() -> connection.createChannel().basicConsume("nobody-has-this", new DefaultConsumer(null)), false), 404);
      equal(code(() -> connection.createChannel().exchangeDeclare("amq.direct", "fanout"), false), 406);
      try (Connection other = connect(url)) {
        equal(code(() -> other.createChannel().queueDeclarePassive(queue), false), 405);
      }
      Channel channel = connection.createChannel();
      BlockingQueue<ShutdownSignalException> closed = new LinkedBlockingQueue<>();
      channel.addShutdownListener(closed::add);
      channel.basicAck(99, false);
      ShutdownSignalException cause = closed.poll(SECONDS, TimeUnit.SECONDS);
      AMQP.Channel.Close close = (AMQP.Channel.Close) cause.getReason();
      equal(Arrays.asList(close.getReplyCode(), close.getClassId(), close.getMethodId()), Arrays.asList(406, 60, 80));
      check(connection.isOpen(), "the connection is closed");
      try {
        channel.basicQos(1);
        throw new AssertionError("the channel is still used");
      } catch (AlreadyClosedException expected) {
        equal(expected.getReason(), close);
      }
    }
  }

  public static void connections_close_with_codes(String url) throws Exception {
    equal(code(() -> connect(url).createChannel().basicQos(10, 1, false), true), 540);
    equal(
        code(
            () -> {
              Channel channel = connect(url).createChannel();
              String queue = ownQueue(channel);
              channel.basicConsume(queue, false, "same", new DefaultConsumer(channel));
              channel.basicConsume(queue, false, "same", new DefaultConsumer(channel));
            },
            true),
        530);
    Connection connection = connect(url);
    BlockingQueue<ShutdownSignalException> closed = new LinkedBlockingQueue<>();
    connection.addShutdownListener(closed::add);
    connection.createChannel().basicPublish("", "nobody", false, true, null, octets("1"));
    ShutdownSignalException cause = closed.poll(SECONDS, TimeUnit.SECONDS);
    equal(((AMQP.Connection.Close) cause.getReason()).getReplyText(), "NOT_IMPLEMENTED - immediate=true");
  }

  public static void wrong_password(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setPassword("wrong");
    try {
      factory.newConnection();
      throw new AssertionError("any password will do");
    } catch (AuthenticationFailureException expected) {
      check(expected.getMessage().startsWith("ACCESS_REFUSED"), expected.getMessage());
    }
  }

  public static void unknown_virtual_host(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setVirtualHost("odd");
    equal(code(factory::newConnection, true), 530);
  }

  // -- the connection

  public static void heartbeats(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setRequestedHeartbeat(1);
    try (Connection connection = factory.newConnection()) {
      equal(connection.getHeartbeat(), 1);
      Channel channel = connection.createChannel();
      Thread.sleep(3500);
      check(connection.isOpen(), "the connection is closed");
      ownQueue(channel);
    }
  }

  public static void limits_are_agreed(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setRequestedChannelMax(3);
    try (Connection connection = factory.newConnection()) {
      equal(connection.getChannelMax(), 3);
      Channel channel = connection.createChannel();
      for (int n = 0; n < 2; n++) connection.createChannel();
      equal(connection.createChannel(), null);
      channel.close();
      check(connection.createChannel() != null, "the number of a closed channel is not free");
    }
  }

  // -- with a restart of the broker

  /** Has the broker restarted: the program that runs this does it when it reads the line. */
  static void restart() throws IOException {
    System.out.println("restart");
    check(System.in.read() == '\n', "no answer");
  }

  public static void recovers_after_a_restart(String url) throws Exception {
    ConnectionFactory factory = factory(url);
    factory.setAutomaticRecoveryEnabled(true);
    factory.setNetworkRecoveryInterval(300);
    try (Connection connection = factory.newConnection()) {
      Channel channel = connection.createChannel();
      String durable = "java-durable-" + System.nanoTime();
      channel.queueDeclare(durable, true, false, false, null);
      channel.exchangeDeclare(durable, "topic", true);
      String own = ownQueue(channel);
      channel.queueBind(own, durable, "#");
      Taking consumer = new Taking(channel);
      channel.basicConsume(own, false, consumer);
      channel.confirmSelect();
      AMQP.BasicProperties persistent = new AMQP.BasicProperties.Builder().deliveryMode(2).build();
      channel.basicPublish("", durable, persistent, octets("stored"));
      channel.waitForConfirmsOrDie(SECONDS * 1000);
      CountDownLatch recovered = new CountDownLatch(1);
      ((Recoverable) connection)
          .addRecoveryListener(
              new RecoveryListener() {
                @Override
                public void handleRecovery(Recoverable one) {
                  recovered.countDown();
                }

                @Override
                public void handleRecoveryStarted(Recoverable one) {}
              });
      restart();
      check(recovered.await(40, TimeUnit.SECONDS), "it did not recover");
      equal(text(channel.basicGet(durable, true).getBody()), "stored");
      channel.basicPublish(durable, "any.key", null, octets("again"));
      channel.waitForConfirmsOrDie(SECONDS * 1000);
      Delivered found = consumer.next();
      equal(found.body, "again");
      channel.basicAck(found.envelope.getDeliveryTag(), false);
      channel.queueDelete(durable);
      channel.exchangeDelete(durable);
    }
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 2) authorities = arguments[2];
    try {
      JavaPeer.class.getMethod(arguments[1], String.class).invoke(null, arguments[0]);
    } catch (InvocationTargetException failure) {
      failure.getCause().printStackTrace();
      System.exit(1);
    }
    System.exit(0); // a connection that a scenario left open has threads
  }
}
