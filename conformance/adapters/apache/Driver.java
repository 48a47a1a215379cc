import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Apache's Java clients, driven over standard input and output by conformance/adapters/apache/java_clients.py.
 *
 * A command is a line of words, an event a line of JSON. Every command ends with the event "done" or "error".
 *
 *   send MODE TOPIC COUNT BYTES TAG   MODE is sync, async, oneway, batch or delay-LEVEL; bodies are "0", "1", ...
 *                                     padded with dots to BYTES; keys are "key-0", "key-1", ...
 *   subscribe NAME MODE GROUP TOPIC EXPRESSION   MODE is concurrent, orderly, broadcast or lite
 *   pull GROUP TOPIC                  all messages of the topic's queues
 *   answer NAME GROUP TOPIC           start a consumer that replies to each message, with "re:" and its body
 *   request TOPIC BODY MS             send a request and wait for its reply, an event "reply" or "no-reply"
 *   close NAME                        close the consumer with that name
 *
 * A consumer fails each message whose tag is "fail" at its first delivery.
 */
public class Driver {
    private static final long SEND_TIMEOUT_MS = 20_000;

    private final String nameServer;
    private final Map<String, AutoCloseable> consumers = new HashMap<>();
    private DefaultMQProducer producer;

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        emit("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                driver.obey(line.split(" "));
                emit("done");
            } catch (Throwable error) {
                emit("error", "message", error.toString());
            }
        }
        driver.close();
        System.exit(0);
    }

    private Driver(String nameServer) {
        this.nameServer = nameServer;
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "send":
                send(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), words[5]);
                break;
            case "subscribe":
                consumers.put(words[1], subscribe(words[1], words[2], words[3], words[4], words[5]));
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
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    private void close() throws Exception {
        for (AutoCloseable consumer : consumers.values()) {
            consumer.close();
        }
        if (producer != null) {
            producer.shutdown();
        }
    }

    // Sending.

    private DefaultMQProducer producer() throws Exception {
        if (producer == null) {
            producer = new DefaultMQProducer("driver_producer");
            producer.setNamesrvAddr(nameServer);
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

    private static void sent(SendResult result) {
        emit("sent", "status", result.getSendStatus().name(), "msgId", result.getMsgId(),
            "offsetMsgId", result.getOffsetMsgId(), "queueId", result.getMessageQueue().getQueueId(),
            "queueOffset", result.getQueueOffset());
    }

    // Consuming.

    private AutoCloseable subscribe(String name, String mode, String group, String topic, String expression)
        throws Exception {
        return mode.equals("lite") ? lite(name, group, topic, expression) : push(name, mode, group, topic, expression);
    }

    private AutoCloseable push(String name, String mode, String group, String topic, String expression)
        throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, expression);
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

    private static boolean consumed(String consumer, List<MessageExt> messages) {
        boolean ok = true;
        for (MessageExt message : messages) {
            emit("message", "consumer", consumer, "topic", message.getTopic(), "msgId", message.getMsgId(),
                "body", new String(message.getBody(), StandardCharsets.UTF_8), "tag", message.getTags(),
                "keys", message.getKeys(), "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
                "reconsumeTimes", message.getReconsumeTimes(), "bornTimestamp", message.getBornTimestamp(),
                "storeTimestamp", message.getStoreTimestamp());
            ok &= !"fail".equals(message.getTags()) || message.getReconsumeTimes() > 0;
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
