import java.nio.ByteBuffer;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * The load of `mqproof bench client` on Apache's Java client. It takes the arguments of client_load.py, and writes the
 * same lines.
 */
public class ClientLoad {
    private static final int WARM_SENDS = 20_000;
    private static final long WAIT_S = 300;

    public static void main(String[] args) throws Exception {
        String nameServer = args[0];
        String topic = args[2];
        int count = Integer.parseInt(args[3]);
        int size = Integer.parseInt(args[4]);
        int number = Integer.parseInt(args[5]);
        switch (args[1]) {
            case "send":
                send(nameServer, topic, count, size, number);
                break;
            case "block":
                block(nameServer, topic, count, size);
                break;
            case "consume":
                consume(nameServer, topic, count);
                break;
            default:
                measureLatency(nameServer, topic, count, size, number);
        }
        System.exit(0);
    }

    private static DefaultMQProducer started(String nameServer) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("client_load");
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(60_000);
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        return producer;
    }

    private static void send(String nameServer, String topic, int count, int size, int outstanding) throws Exception {
        DefaultMQProducer producer = started(nameServer);
        sendAll(producer, topic, Math.min(count, WARM_SENDS), size, outstanding);
        long began = System.nanoTime();
        sendAll(producer, topic, count, size, outstanding);
        System.out.println(count * 1e9 / (System.nanoTime() - began));
    }

    private static void sendAll(DefaultMQProducer producer, String topic, int count, int size, int outstanding)
        throws Exception {
        Semaphore free = new Semaphore(outstanding);
        for (int i = 0; i < count; i++) {
            acquire(free, 1);
            producer.send(new Message(topic, new byte[size]), released(free));
        }
        acquire(free, outstanding);
    }

    private static void acquire(Semaphore free, int permits) throws Exception {
        if (!free.tryAcquire(permits, WAIT_S, TimeUnit.SECONDS)) {
            fail("no answer");
        }
    }

    private static SendCallback released(Semaphore free) {
        return new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                check(result);
                free.release();
            }

            @Override
            public void onException(Throwable error) {
                fail(error.toString());
            }
        };
    }

    private static void block(String nameServer, String topic, int count, int size) throws Exception {
        DefaultMQProducer producer = started(nameServer);
        for (int i = 0; i < Math.min(count, WARM_SENDS); i++) {
            check(producer.send(new Message(topic, new byte[size])));
        }
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            check(producer.send(new Message(topic, new byte[size])));
        }
        System.out.println(count * 1e9 / (System.nanoTime() - began));
    }

    private interface Listener {
        void receive(MessageExt message);
    }

    private static void subscribe(String nameServer, String topic, Listener listener) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("load_" + System.nanoTime());
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(listener::receive);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    private static void consume(String nameServer, String topic, int count) throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        CountDownLatch first = new CountDownLatch(1);
        subscribe(nameServer, topic, message -> {
            first.countDown();
            left.countDown();
        });
        await(first);
        long began = System.nanoTime();
        await(left);
        System.out.println(count * 1e9 / (System.nanoTime() - began));
    }

    private static void await(CountDownLatch latch) throws Exception {
        if (!latch.await(WAIT_S, TimeUnit.SECONDS)) {
            fail(latch.getCount() + " messages were not delivered");
        }
    }

    private static void measureLatency(String nameServer, String topic, int count, int size, int rate)
        throws Exception {
        double[] delays = new double[count];
        AtomicInteger received = new AtomicInteger();
        CountDownLatch left = new CountDownLatch(count);
        subscribe(nameServer, topic, message -> {
            int at = received.getAndIncrement();
            if (at < count) {
                delays[at] = (System.nanoTime() - ByteBuffer.wrap(message.getBody()).getLong()) / 1e6;
            }
            left.countDown();
        });
        DefaultMQProducer producer = started(nameServer);
        Semaphore unbounded = new Semaphore(0);
        long began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long due = began + (long) (i * 1e9 / rate);
            while (System.nanoTime() < due) {
                LockSupport.parkNanos(due - System.nanoTime());
            }
            byte[] body = ByteBuffer.allocate(size).putLong(due).array();
            producer.send(new Message(topic, body), released(unbounded));
        }
        await(left);
        // The first half warms the compiler.
        double[] later = java.util.Arrays.copyOfRange(delays, count / 2, count);
        java.util.Arrays.sort(later);
        System.out.println(later[later.length / 2] + " " + later[later.length * 99 / 100]);
    }

    private static void check(SendResult result) {
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            fail(result.toString());
        }
    }

    private static void fail(String reason) {
        System.err.println(reason);
        Runtime.getRuntime().halt(1);
    }
}
