import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;

import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Apache's Java clients, driven over standard input and output by conformance/adapters/apache/driver_client.py,
 * where the commands are described. The arguments are the name server, and `trace` for clients that trace.
 *
 * A command is a line of words, each of them percent-encoded; an event is a line of JSON. Every command ends with the
 * event "done" or "error".
 */
public class Driver {
    private static final long SEND_TIMEOUT_MS = 20_000;
    private static final int OFTEN_MS = 1_000;

    private final String nameServer;
    private final boolean traces;
    private final Map<String, AutoCloseable> consumers = new HashMap<>();
    private final Set<String> failed = ConcurrentHashMap.newKeySet();
    private DefaultMQProducer producer;
    private TransactionMQProducer transactions;

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0], args.length > 1 && args[1].equals("trace"));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        emit("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                String[] words = line.split(" ", -1);
                for (int i = 0; i < words.length; i++) {
                    words[i] = URLDecoder.decode(words[i], "UTF-8");
                }
                driver.obey(words);
                emit("done");
            } catch (Throwable error) {
                emit("error", "message", error.toString());
            }
        }
        driver.close();
        System.exit(0);
    }

    private Driver(String nameServer, boolean traces) {
        this.nameServer = nameServer;
        this.traces = traces;
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "send":
                send(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), words[5]);
                break;
            case "put":
                put(words[1], words[2], words[3], words[4], words[5]);
                break;
            case "batch":
                batch(words[1], words[2], Integer.parseInt(words[3]));
                break;
            case "burst":
                burst(words[1], words[2], Integer.parseInt(words[3]), Long.parseLong(words[4]));
                break;
            case "recall":
                recall(words[1], words[2]);
                break;
            case "transactions":
                startTransactions(words[1]);
                break;
            case "transact":
                transact(words[1], words[2], words[3]);
                break;
            case "subscribe":
                consumers.put(words[1], subscribe(words[1], words[2], words[3], words[4], words[5],
                    words.length > 6 ? Integer.parseInt(words[6]) : -1));
                break;
            case "pull":
                pull(words[1], words[2]);
                break;
            case "answer":
                consumers.put(words[1], answer(words[1], words[2], words[3]));
                break;
            case "request":
                request(words[1], words[2], Long.parseLong(words[3]));
                break;
            case "close":
                consumers.remove(words[1]).close();
                break;
            default:
                throw new UnsupportedOperationException("command " + words[0]);
        }
    }

    private void close() throws Exception {
        for (AutoCloseable consumer : consumers.values()) {
            consumer.close();
        }
        if (transactions != null) {
            transactions.shutdown();
        }
        if (producer != null) {
            producer.shutdown();
        }
    }

    // Sending.

    private DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = traces ? new DefaultMQProducer("driver_producer", true, null) : new DefaultMQProducer("driver_producer");
            producer.setNamesrvAddr(nameServer);
            producer.setPollNameServerInterval(OFTEN_MS);
            producer.setHeartbeatBrokerInterval(OFTEN_MS);
            producer.setSendMsgTimeout((int) SEND_TIMEOUT_MS);
            producer.start();
        }
        return producer;
    }

    private void request(String topic, String body, long timeoutMs) throws Exception {
        try {
            Message reply = producer().request(new Message(topic, body.getBytes(StandardCharsets.UTF_8)), timeoutMs);
            emit("reply", "body", new String(reply.getBody(), StandardCharsets.UTF_8));
        } catch (RequestTimeoutException error) {
            emit("no-reply", "message", error.toString());
        }
    }

    private AutoCloseable answer(String name, String group, String topic) throws Exception {
        DefaultMQProducer replier = producer();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                String body = "re:" + new String(message.getBody(), StandardCharsets.UTF_8);
                try {
                    replier.send(MessageUtil.createReplyMessage(message, body.getBytes(StandardCharsets.UTF_8)));
                } catch (Exception error) {
                    emit("not-replied", "message", error.toString());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer::shutdown;
    }

    private void send(String mode, String topic, int count, int bytes, String tag) throws Exception {
        producer();
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            StringBuilder body = new StringBuilder().append(i);
            while (body.length() < bytes) {
                body.append('.');
            }
            messages.add(new Message(topic, tag, "key-" + i, body.toString().getBytes(StandardCharsets.UTF_8)));
        }
        if (mode.equals("batch")) {
            sent(producer.send(messages));
        } else if (mode.equals("async")) {
            sendAsync(messages);
        } else {
            for (Message message : messages) {
                if (mode.equals("oneway")) {
                    producer.sendOneway(message);
                } else {
                    if (mode.startsWith("delay-")) {
                        message.setDelayTimeLevel(Integer.parseInt(mode.substring("delay-".length())));
                    }
                    sent(producer.send(message));
                }
            }
        }
    }

    private void sendAsync(List<Message> messages) throws Exception {
        CountDownLatch open = new CountDownLatch(messages.size());
        for (Message message : messages) {
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    sent(result);
                    open.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    emit("not-sent", "message", error.toString());
                    open.countDown();
                }
            });
        }
        open.await();
    }

    private void put(String mode, String topic, String body, String tag, String properties) throws Exception {
        Message message = new Message(topic, tag, body, body.getBytes(StandardCharsets.UTF_8));
        for (String pair : properties.isEmpty() ? new String[0] : properties.split("&")) {
            String[] parts = pair.split("=");
            message.putUserProperty(parts[0], parts[1]);
        }
        String[] words = mode.split("-", 2);
        switch (words[0]) {
            case "sync":
                break;
            case "async":
                producer();
                sendAsync(List.of(message));
                return;
            case "oneway":
                producer().sendOneway(message);
                return;
            case "level":
                message.setDelayTimeLevel(Integer.parseInt(words[1]));
                break;
            case "sec":
                setTime(message, "setDelayTimeSec", "TIMER_DELAY_SEC", words[1]);
                break;
            case "ms":
                setTime(message, "setDelayTimeMs", "TIMER_DELAY_MS", words[1]);
                break;
            case "at":
                setTime(message, "setDeliverTimeMs", "TIMER_DELIVER_MS", words[1]);
                break;
            case "key":
                int hash = words[1].hashCode() & Integer.MAX_VALUE;
                sent(producer().send(message, (queues, ms, ignored) -> queues.get(hash % queues.size()), null));
                return;
            default:
                throw new UnsupportedOperationException("mode " + mode);
        }
        sent(producer().send(message));
    }

    /** Sets the time by the method of 5.x, or as a property of the application where there is no such method. */
    private static void setTime(Message message, String method, String property, String value) throws Exception {
        try {
            Message.class.getMethod(method, long.class).invoke(message, Long.parseLong(value));
        } catch (NoSuchMethodException absent) {
            message.putUserProperty(property, value);
        }
    }

    private void batch(String topic, String prefix, int count) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            messages.add(new Message(topic, "", prefix + i, (prefix + i).getBytes(StandardCharsets.UTF_8)));
        }
        sent(producer().send(messages));
    }

    /** Sends one message after the other, in the background. */
    private void burst(String topic, String prefix, int count, long gapMs) throws Exception {
        DefaultMQProducer sender = producer();
        Thread thread = new Thread(() -> {
            for (int i = 0; i < count; i++) {
                String body = prefix + i;
                try {
                    SendResult result = sender.send(new Message(topic, "", body, body.getBytes(StandardCharsets.UTF_8)));
                    emit("burst", "body", body, "status", result.getSendStatus().name());
                } catch (Exception error) {
                    emit("burst", "body", body, "status", "UNKNOWN");
                }
                sleep(gapMs);
            }
            emit("burst-end");
        });
        thread.start();
    }

    private void recall(String topic, String handle) throws Exception {
        try {
            Method method = DefaultMQProducer.class.getMethod("recallMessage", String.class, String.class);
            emit("recalled", "msgId", String.valueOf(method.invoke(producer(), topic, handle)));
        } catch (NoSuchMethodException absent) {
            throw new UnsupportedOperationException("this client cannot recall");
        } catch (InvocationTargetException error) {
            emit("not-recalled", "message", String.valueOf(error.getCause()));
        }
    }

    private static void sent(SendResult result) {
        emit("sent", "status", result.getSendStatus().name(), "msgId", result.getMsgId(),
            "offsetMsgId", result.getOffsetMsgId(), "queueId", result.getMessageQueue().getQueueId(),
            "queueOffset", result.getQueueOffset(), "handle", handle(result));
    }

    private static String handle(SendResult result) {
        try {
            return (String) SendResult.class.getMethod("getRecallHandle").invoke(result);
        } catch (ReflectiveOperationException absent) {
            return null;
        }
    }

    // Transactions: the tag of a message says what its local transaction and its checks return.

    private void startTransactions(String group) throws Exception {
        transactions = new TransactionMQProducer(group);
        transactions.setNamesrvAddr(nameServer);
        transactions.setInstanceName("transactions");
        transactions.setSendMsgTimeout((int) SEND_TIMEOUT_MS);
        transactions.setPollNameServerInterval(OFTEN_MS);
        transactions.setHeartbeatBrokerInterval(OFTEN_MS);
        transactions.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                String tag = message.getTags();
                emit("executed", "body", new String(message.getBody(), StandardCharsets.UTF_8));
                if (tag.startsWith("hang")) {
                    sleep(Long.MAX_VALUE);
                }
                return tag.equals("commit") ? LocalTransactionState.COMMIT_MESSAGE
                    : tag.equals("rollback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                emit("checked", "body", new String(message.getBody(), StandardCharsets.UTF_8));
                return message.getTags().endsWith("commit")
                    ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        transactions.start();
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void transact(String topic, String body, String tag) throws Exception {
        Message message = new Message(topic, tag, body, body.getBytes(StandardCharsets.UTF_8));
        if (!tag.startsWith("hang")) {
            sent(transactions.sendMessageInTransaction(message, null));
            return;
        }
        Thread thread = new Thread(() -> {
            try {
                transactions.sendMessageInTransaction(message, null);
            } catch (Exception error) {
                emit("not-sent", "message", error.toString());
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    // Consuming.

    private AutoCloseable subscribe(
        String name, String mode, String group, String topic, String expression, int redeliveriesMax) throws Exception {
        return mode.equals("lite") ? lite(name, group, topic, expression)
            : push(name, mode, group, topic, expression, redeliveriesMax);
    }

    private AutoCloseable push(
        String name, String mode, String group, String topic, String expression, int redeliveriesMax) throws Exception {
        DefaultMQPushConsumer consumer =
            traces ? new DefaultMQPushConsumer(group, true, null) : new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(OFTEN_MS);
        consumer.setHeartbeatBrokerInterval(OFTEN_MS);
        consumer.setPersistConsumerOffsetInterval(OFTEN_MS);
        consumer.setMaxReconsumeTimes(redeliveriesMax);
        if (expression.startsWith("sql:")) {
            consumer.subscribe(topic, MessageSelector.bySql(expression.substring("sql:".length())));
        } else {
            consumer.subscribe(topic, expression);
        }
        if (mode.equals("broadcast")) {
            setMessageModel(consumer, "BROADCASTING");
        }
        if (mode.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                consumed(name, messages)
                    ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                consumed(name, messages)
                    ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        consumer.start();
        return consumer::shutdown;
    }

    /** The enum is in different packages in 4.9 and in 5.x. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void setMessageModel(DefaultMQPushConsumer consumer, String model) throws Exception {
        for (java.lang.reflect.Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class<Enum>) method.getParameterTypes()[0], model));
            }
        }
    }

    private AutoCloseable lite(String name, String group, String topic, String expression) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, expression);
        consumer.start();
        Thread poller = new Thread(() -> {
            while (consumer.isRunning()) {
                consumed(name, consumer.poll(200));
            }
        });
        poller.start();
        return () -> {
            consumer.shutdown();
            poller.join();
        };
    }

    private void pull(String group, String topic) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.start();
        try {
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
                PullResult result = consumer.pull(queue, "*", 0, 32);
                while (result.getPullStatus() == PullStatus.FOUND) {
                    consumed("pull", result.getMsgFoundList());
                    result = consumer.pull(queue, "*", result.getNextBeginOffset(), 32);
                }
                consumer.updateConsumeOffset(queue, result.getNextBeginOffset());
                emit("queue-end", "queueId", queue.getQueueId(), "next", result.getNextBeginOffset(),
                    "max", consumer.maxOffset(queue), "min", consumer.minOffset(queue));
            }
        } finally {
            consumer.shutdown();
        }
    }

    private boolean consumed(String consumer, List<MessageExt> messages) {
        boolean ok = true;
        for (MessageExt message : messages) {
            emit("message", "consumer", consumer, "topic", message.getTopic(), "msgId", message.getMsgId(),
                "body", new String(message.getBody(), StandardCharsets.UTF_8), "tag", message.getTags(),
                "keys", message.getKeys(), "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
                "reconsumeTimes", message.getReconsumeTimes(), "bornTimestamp", message.getBornTimestamp(),
                "storeTimestamp", message.getStoreTimestamp(), "receivedMs", System.currentTimeMillis());
            ok &= !"dead".equals(message.getTags());
            ok &= !"fail".equals(message.getTags()) || message.getReconsumeTimes() > 0
                || !failed.add(consumer + message.getKeys() + message.getMsgId());
        }
        return ok;
    }

    // Events.

    private static synchronized void emit(String event, Object... members) {
        StringBuilder line = new StringBuilder("{\"event\":").append(quoted(event));
        for (int i = 0; i < members.length; i += 2) {
            line.append(',').append(quoted((String) members[i])).append(':');
            Object value = members[i + 1];
            line.append(value instanceof Number || value == null ? String.valueOf(value) : quoted(value.toString()));
        }
        System.out.println(line.append('}'));
        System.out.flush();
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
