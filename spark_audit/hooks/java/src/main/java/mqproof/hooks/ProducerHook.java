package mqproof.hooks;

import java.util.Collections;
import java.util.concurrent.atomic.AtomicBoolean;

import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Row;

import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.impl.CommunicationMode;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageBatch;
import org.apache.rocketmq.common.message.MessageType;

/** Records `send` before each attempt, and `send_ack` or `send_fail` after it. */
final class ProducerHook implements SendMessageHook {
    private final DefaultMQProducer producer;
    private final Recorder recorder;
    private final AtomicBoolean isStated = new AtomicBoolean();
    private final ThreadLocal<Attempt> attempts = new ThreadLocal<>();

    ProducerHook(DefaultMQProducer producer, Recorder recorder) {
        this.producer = producer;
        this.recorder = recorder;
    }

    /** The newest attempt of a thread: the client repeats a send in the same thread, with the same message. */
    private static final class Attempt {
        final Message message;
        final int number;

        Attempt(Message message, int number) {
            this.message = message;
            this.number = number;
        }
    }

    @Override
    public String hookName() {
        return "audit-hooks";
    }

    @Override
    public void sendMessageBefore(SendMessageContext context) {
        try {
            Message message = context.getMessage();
            if (context.getCommunicationMode() == CommunicationMode.ASYNC && !isStated.getAndSet(true)) {
                statesHiddenRetries();
            }
            Attempt last = attempts.get();
            int number = last != null && last.message == message ? last.number + 1 : 1;
            attempts.set(new Attempt(message, number));
            for (Message each : messages(message)) {
                Row row = row("send", context, each, number);
                String tags = each.getTags();
                row.tags = tags == null ? "" : tags;
                recorder.record(row);
            }
        } catch (RuntimeException error) {
            Failures.report(error);
        }
    }

    /** Records that the client repeats asynchronous sends by itself, which no hook shows. */
    private void statesHiddenRetries() {
        Row row = new Row("register");
        row.client = producer.buildMQClientId();
        row.group = producer.getProducerGroup();
        row.attributes = new String[] {"retries", Integer.toString(producer.getRetryTimesWhenSendAsyncFailed())};
        recorder.record(row);
    }

    @Override
    public void sendMessageAfter(SendMessageContext context) {
        try {
            SendResult result = context.getSendResult();
            Exception error = context.getException();
            Message message = context.getMessage();
            Attempt last = attempts.get();
            int number = last != null && last.message == message ? last.number : -1;
            if (result != null) {
                if (number > 0) {
                    attempts.remove();
                }
                // A half message is stored, and delivered only if it is committed, which no hook of all releases shows.
                if (context.getMsgType() != MessageType.Trans_Msg_Half) {
                    acknowledged(context, result, number);
                }
            } else if (error != null) {
                for (Message each : messages(message)) {
                    Row row = row("send_fail", context, each, number);
                    row.status = status(error);
                    recorder.record(row);
                }
            }
        } catch (RuntimeException error) {
            Failures.report(error);
        }
    }

    private void acknowledged(SendMessageContext context, SendResult result, int number) {
        int place = 0;
        for (Message each : messages(context.getMessage())) {
            Row row = row("send_ack", context, each, number);
            row.status = result.getSendStatus().name();
            row.queueId = result.getMessageQueue().getQueueId();
            // The response gives the place of a delayed message in the delay queue.
            row.queueOffset = isDelayed(each) ? -1 : result.getQueueOffset() + place;
            row.attributes[1] = result.getMessageQueue().getBrokerName();
            recorder.record(row);
            place++;
        }
    }

    private Row row(String kind, SendMessageContext context, Message message, int number) {
        Row row = new Row(kind);
        row.messageId = message.getProperty("UNIQ_KEY");
        row.topic = message.getTopic();
        row.queueId = context.getMq().getQueueId();
        row.group = context.getProducerGroup();
        row.client = producer.buildMQClientId();
        row.attempt = number;
        row.keys = message.getKeys();
        row.attributes = new String[] {"broker", context.getMq().getBrokerName()};
        return row;
    }

    private static Iterable<Message> messages(Message message) {
        return message instanceof MessageBatch ? (MessageBatch) message : Collections.singleton(message);
    }

    private static boolean isDelayed(Message message) {
        return message.getDelayTimeLevel() > 0 || message.getProperty("TIMER_DELAY_SEC") != null
            || message.getProperty("TIMER_DELAY_MS") != null || message.getProperty("TIMER_DELIVER_MS") != null;
    }

    /** Returns the name of the refusal, or `unknown` if the message may be stored. */
    private static String status(Exception error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            if (cause instanceof MQBrokerException) {
                return refusal(((MQBrokerException) cause).getResponseCode());
            }
            if (cause.getClass().getSimpleName().equals("RemotingConnectException")) {
                return "NOT_CONNECTED";
            }
        }
        return "unknown";
    }

    private static String refusal(int code) {
        switch (code) {
            case 1:
                return "unknown"; // SYSTEM_ERROR: the broker may have failed after it had stored the message
            case 2:
                return "SYSTEM_BUSY";
            case 3:
                return "REQUEST_CODE_NOT_SUPPORTED";
            case 13:
                return "MESSAGE_ILLEGAL";
            case 14:
                return "SERVICE_NOT_AVAILABLE";
            case 16:
                return "NO_PERMISSION";
            case 17:
                return "TOPIC_NOT_EXIST";
            case 215:
                return "FLOW_CONTROL";
            default:
                return "unknown";
        }
    }
}
