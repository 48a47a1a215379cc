package mqproof.hooks;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

import mqproof.hooks.log.FileOutput;
import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Settings;

import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Measures what the hooks add to one send: the time of both calls in the thread of the application.
 *
 * The rows go to files in a temporary directory. The arguments are the number of sends, and sends a second (0: as many
 * as possible). No client connects to anything.
 */
public final class SendCost {
    private static final int WARM_UP = 200_000;

    private SendCost() {
    }

    public static void main(String[] arguments) throws Exception {
        int sends = Integer.parseInt(arguments[0]);
        long between = Integer.parseInt(arguments[1]) == 0 ? 0 : 1_000_000_000L / Integer.parseInt(arguments[1]);
        Path folder = Files.createTempDirectory("audit-hooks-cost");
        Settings settings = Settings.read("directory=" + folder);
        Recorder recorder = new Recorder(FileOutput.open(settings), settings.queueRows());
        DefaultMQProducer producer = new DefaultMQProducer("cost");
        ProducerHook hook = new ProducerHook(producer, recorder);
        measure(hook, WARM_UP, between / 2, new long[WARM_UP]);
        long before = recorder.droppedInAll();
        long[] nanos = new long[sends];
        long began = System.nanoTime();
        measure(hook, sends, between, nanos);
        double seconds = (System.nanoTime() - began) / 1e9;
        recorder.close();
        Arrays.sort(nanos);
        System.out.printf("%d sends, %.0f/s; hooks per send: mean %.2f us, p50 %.2f, p99 %.2f, p99.9 %.2f; dropped %d%n",
            sends, sends / seconds, Arrays.stream(nanos).average().orElse(0) / 1e3, nanos[sends / 2] / 1e3,
            nanos[(int) (sends * 0.99)] / 1e3, nanos[(int) (sends * 0.999)] / 1e3, recorder.droppedInAll() - before);
    }

    private static void measure(ProducerHook hook, int sends, long between, long[] nanos) {
        MessageQueue queue = new MessageQueue("Orders", "broker-a", 1);
        long due = System.nanoTime();
        for (int i = 0; i < sends; i++) {
            due += between;
            while (between > 0 && System.nanoTime() < due) {
                Thread.yield();
            }
            Message message = new Message("Orders", "coffee", "order-" + i, new byte[100]);
            message.putUserProperty("source", "web");
            org.apache.rocketmq.common.message.MessageClientIDSetter.setUniqID(message);
            SendMessageContext context = new SendMessageContext();
            context.setProducerGroup("cost");
            context.setMessage(message);
            context.setMq(queue);
            SendResult result = new SendResult();
            result.setSendStatus(SendStatus.SEND_OK);
            result.setMessageQueue(queue);
            result.setQueueOffset(i);
            long began = System.nanoTime();
            hook.sendMessageBefore(context);
            context.setSendResult(result);
            hook.sendMessageAfter(context);
            nanos[i] = System.nanoTime() - began;
        }
    }
}
