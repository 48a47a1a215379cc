package example;

import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** The application under test: it places orders, and sends a reminder two hours after each. */
public final class Orders implements AutoCloseable {
    private static final int TWO_HOURS = 18; // the last of RocketMQ's delay levels

    private final DefaultMQProducer producer;

    public Orders(String nameServer) throws MQClientException {
        producer = new DefaultMQProducer("orders");
        producer.setNamesrvAddr(nameServer);
        producer.start();
    }

    public void place(String drink) throws Exception {
        send(new Message("Orders", drink.getBytes(StandardCharsets.UTF_8)));
        var reminder = new Message("Reminders", drink.getBytes(StandardCharsets.UTF_8));
        reminder.setDelayTimeLevel(TWO_HOURS);
        send(reminder);
    }

    private void send(Message message) throws Exception {
        var result = producer.send(message);
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException("not stored safely: " + result);
        }
    }

    @Override
    public void close() {
        producer.shutdown();
    }
}
