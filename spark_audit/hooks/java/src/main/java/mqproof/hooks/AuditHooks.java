package mqproof.hooks;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

import mqproof.hooks.log.FileOutput;
import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Settings;

import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/**
 * Records what RocketMQ's Java clients send and consume, in an event log that `mqproof audit` reads.
 *
 * Call observe() before the client starts:
 *
 * <pre>AuditHooks.observe(producer);</pre>
 *
 * Settings are read from system properties and the environment (mqproof.hooks.log.Settings).
 */
public final class AuditHooks {
    private static final Set<Object> OBSERVED = Collections.synchronizedSet(
        Collections.newSetFromMap(new WeakHashMap<>()));
    private static final String INNER_GROUP = "CLIENT_INNER_PRODUCER";
    private static final String TRACE_GROUP = "_INNER_TRACE_PRODUCER";

    private static Recorder shared;

    private AuditHooks() {
    }

    /** Records the sends of a producer that has not started yet. */
    public static void observe(DefaultMQProducer producer) {
        observe(producer, shared());
    }

    /** Records the deliveries of a consumer that has not started yet. */
    public static void observe(DefaultMQPushConsumer consumer) {
        observe(consumer, shared());
    }

    /** Records what a consumer polls, which has not started yet. */
    public static void observe(DefaultLitePullConsumer consumer) {
        observe(consumer, shared());
    }

    /** As observe(producer), with another recorder than the process's own. */
    public static void observe(DefaultMQProducer producer, Recorder recorder) {
        String group = String.valueOf(producer.getProducerGroup());
        boolean isInternal = group.equals(INNER_GROUP) || group.startsWith(TRACE_GROUP) || group.equals(TopicOutput.GROUP);
        if (!isInternal && OBSERVED.add(producer)) {
            producer.getDefaultMQProducerImpl().registerSendMessageHook(new ProducerHook(producer, recorder));
        }
    }

    /** As observe(consumer), with another recorder than the process's own. */
    public static void observe(DefaultMQPushConsumer consumer, Recorder recorder) {
        if (OBSERVED.add(consumer)) {
            DefaultMQPushConsumerImpl inner = consumer.getDefaultMQPushConsumerImpl();
            Membership membership = new Membership(consumer, consumer.getConsumerGroup(), inner::subscriptions,
                consumer::getMessageListener, consumer::getConsumeThreadMax, recorder);
            inner.registerConsumeMessageHook(new ConsumerHook(membership, recorder, true));
            consumer.setAllocateMessageQueueStrategy(
                new ObservedStrategy(consumer.getAllocateMessageQueueStrategy(), membership));
        }
    }

    /** As observe(consumer), with another recorder than the process's own. */
    public static void observe(DefaultLitePullConsumer consumer, Recorder recorder) {
        observe(consumer, inner(consumer), recorder);
    }

    private static void observe(
        DefaultLitePullConsumer consumer, DefaultLitePullConsumerImpl inner, Recorder recorder) {
        if (OBSERVED.add(consumer)) {
            Membership membership = new Membership(
                consumer, consumer.getConsumerGroup(), inner::subscriptions, () -> null, () -> 1, recorder);
            // The hook runs when messages are polled: their consumption has not ended then.
            inner.registerConsumeMessageHook(new ConsumerHook(membership, recorder, false));
            consumer.setAllocateMessageQueueStrategy(
                new ObservedStrategy(consumer.getAllocateMessageQueueStrategy(), membership));
        }
    }

    /** Called by the agent when a client starts. */
    public static void starting(Object inner) {
        if (inner instanceof DefaultMQProducerImpl) {
            observe(((DefaultMQProducerImpl) inner).getDefaultMQProducer());
        } else if (inner instanceof DefaultMQPushConsumerImpl) {
            observe(((DefaultMQPushConsumerImpl) inner).getDefaultMQPushConsumer());
        } else if (inner instanceof DefaultLitePullConsumerImpl) {
            DefaultLitePullConsumerImpl lite = (DefaultLitePullConsumerImpl) inner;
            observe(lite.getDefaultLitePullConsumer(), lite, shared());
        }
    }

    /**
     * Returns the recorder of this process; the first call opens its output.
     *
     * Throws IllegalArgumentException for a wrong setting, and IllegalStateException if the output cannot be opened.
     */
    public static synchronized Recorder shared() {
        if (shared == null) {
            Settings settings = Recorder.settings();
            try {
                shared = new Recorder(
                    settings.topic() == null ? FileOutput.open(settings) : new TopicOutput(settings),
                    settings.queueRows(), settings.sampling());
            } catch (IOException error) {
                throw new IllegalStateException("audit-hooks: " + error, error);
            }
            Runtime.getRuntime().addShutdownHook(new Thread(shared::complete, "audit-hooks-end"));
        }
        return shared;
    }

    private static DefaultLitePullConsumerImpl inner(DefaultLitePullConsumer consumer) {
        try {
            Field field = DefaultLitePullConsumer.class.getDeclaredField("defaultLitePullConsumerImpl");
            field.setAccessible(true);
            return (DefaultLitePullConsumerImpl) field.get(consumer);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("audit-hooks: this client's DefaultLitePullConsumer is not known", error);
        }
    }
}
