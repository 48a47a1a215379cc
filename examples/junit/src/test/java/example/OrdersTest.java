package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class OrdersTest {
    @RegisterExtension
    static final RocketMqBroker broker = new RocketMqBroker();

    @Test
    void anOrderIsSent() throws Exception {
        place("coffee");
        assertEquals(List.of("coffee"), broker.bodies("Orders"));
    }

    @Test
    void anOrderIsStoredTwiceIfItsAnswerIsLost() throws Exception {
        broker.loseAnswersOfSends(1);
        place("tea");
        assertEquals(List.of("tea", "tea"), broker.bodies("Orders"));
    }

    @Test
    void aReminderArrivesAfterTwoHours() throws Exception {
        place("cocoa");
        var arrived = new LinkedBlockingQueue<String>();
        var consumer = new DefaultMQPushConsumer("reminders");
        consumer.setNamesrvAddr(broker.nameServer());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("Reminders", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> arrived.add(new String(message.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        try {
            broker.advanceHours(1.9);
            assertEquals(List.of(), broker.bodies("Reminders"));
            broker.advanceHours(0.2);
            assertEquals("cocoa", arrived.poll(60, TimeUnit.SECONDS));
        } finally {
            consumer.shutdown();
        }
    }

    private static void place(String drink) throws Exception {
        try (var orders = new Orders(broker.nameServer())) {
            orders.place(drink);
        }
    }
}
