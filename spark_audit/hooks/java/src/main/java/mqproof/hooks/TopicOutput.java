package mqproof.hooks;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;

import mqproof.hooks.log.Output;
import mqproof.hooks.log.Settings;

import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/**
 * Writes rows to a topic, as messages with lines of NDJSON.
 *
 * Each process has a node of its own, because a topic does not keep the last number of a node. A failed send may have
 * been stored, so its numbers are not used again.
 */
final class TopicOutput implements Output {
    static final String GROUP = "AUDIT_HOOKS_PRODUCER";
    private static final int BODY_BYTES_MAX = 1 << 20;

    private final DefaultMQProducer producer;
    private final String topic;
    private final String node;
    private boolean isStarted;
    private long seqNext;

    TopicOutput(Settings settings) {
        this.topic = settings.topic();
        this.node = settings.node() + "-" + Long.toString(System.currentTimeMillis(), Character.MAX_RADIX);
        this.producer = new DefaultMQProducer(GROUP);
        producer.setNamesrvAddr(settings.nameServers());
        producer.setInstanceName("audit-hooks-" + node);
    }

    @Override
    public String node() {
        return node;
    }

    @Override
    public long seqNext() {
        return seqNext;
    }

    @Override
    public long missingSince() {
        return -1;
    }

    @Override
    public void write(List<byte[]> rows, long lastTs) throws IOException {
        seqNext += rows.size();
        if (!isStarted) {
            try {
                producer.start();
            } catch (MQClientException error) {
                throw new IOException(error);
            }
            isStarted = true;
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (byte[] row : rows) {
            if (body.size() > 0 && body.size() + row.length > BODY_BYTES_MAX) {
                send(body);
            }
            body.write(row, 0, row.length);
        }
        send(body);
    }

    private void send(ByteArrayOutputStream body) throws IOException {
        try {
            producer.send(new Message(topic, body.toByteArray()));
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw new IOException(ended);
        } catch (Exception error) {
            throw new IOException(error);
        }
        body.reset();
    }

    @Override
    public void rest() {
        // Each batch is sent at once.
    }

    @Override
    public void complete() {
        // Nothing waits here.
    }

    @Override
    public void close() {
        producer.shutdown();
    }
}
