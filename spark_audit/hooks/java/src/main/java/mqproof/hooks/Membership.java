package mqproof.hooks;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Row;

import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;

/** A consumer as a member of its group: records what it subscribes to, and which queues it reads. */
final class Membership {
    private static final String RETRY_PREFIX = "%RETRY%";

    private final ClientConfig consumer;
    private final String group;
    private final Supplier<Collection<?>> subscriptions;
    private final Supplier<Object> listener;
    private final IntSupplier threads;
    private final Recorder recorder;
    private final Map<String, String> stated = new ConcurrentHashMap<>();
    private final Map<String, Collection<?>> queues = new ConcurrentHashMap<>();

    Membership(ClientConfig consumer, String group, Supplier<Collection<?>> subscriptions, Supplier<Object> listener,
        IntSupplier threads, Recorder recorder) {
        this.consumer = consumer;
        this.group = group;
        this.subscriptions = subscriptions;
        this.listener = listener;
        this.threads = threads;
        this.recorder = recorder;
    }

    /** Returns the client id; it is final when the client has started. */
    String client() {
        return consumer.buildMQClientId();
    }

    boolean isOrderly() {
        return listener.get() instanceof MessageListenerOrderly;
    }

    /** Records the subscription to a topic, unless that is done. */
    void reads(String topic) {
        if (topic.startsWith(RETRY_PREFIX)) {
            return;
        }
        for (Object subscription : subscriptions.get()) {
            // The class is in another package in 5.x.
            if (topic.equals(text(subscription, "getTopic"))) {
                String type = text(subscription, "getExpressionType");
                String expression = text(subscription, "getSubString");
                if (!(type + ' ' + expression).equals(stated.put(topic, type + ' ' + expression))) {
                    Row row = row("subscribe", topic);
                    // With several threads, the messages of a queue reach the listener in any order.
                    row.attributes = isOrderly() || threads.getAsInt() == 1
                        ? new String[] {"type", type, "expression", expression}
                        : new String[] {"type", type, "expression", expression,
                            "threads", Integer.toString(threads.getAsInt())};
                    recorder.record(row);
                }
            }
        }
    }

    /** Records the queues of a topic that this member reads from now on, if they have changed. */
    void owns(String topic, Collection<?> owned) {
        reads(topic);
        if (topic.startsWith(RETRY_PREFIX) || owned.equals(queues.put(topic, owned))) {
            return;
        }
        Row row = row("rebalance", topic);
        String number = Integer.toString(owned.size());
        row.attributes = isOrderly()
            ? new String[] {"queues", number, "orderly", "true"} : new String[] {"queues", number};
        recorder.record(row);
    }

    private Row row(String kind, String topic) {
        Row row = new Row(kind);
        row.topic = topic;
        row.group = group;
        row.client = client();
        return row;
    }

    private static String text(Object subscription, String getter) {
        try {
            return String.valueOf(subscription.getClass().getMethod(getter).invoke(subscription));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
