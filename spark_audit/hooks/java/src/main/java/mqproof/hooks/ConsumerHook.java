package mqproof.hooks;

import java.util.List;

import mqproof.hooks.log.Recorder;
import mqproof.hooks.log.Row;

import org.apache.rocketmq.client.hook.ConsumeMessageContext;
import org.apache.rocketmq.client.hook.ConsumeMessageHook;
import org.apache.rocketmq.common.message.MessageExt;

/** Records `deliver` before the listener runs, and `consume_ok` or `consume_fail` after it. */
final class ConsumerHook implements ConsumeMessageHook {
    private final Membership membership;
    private final Recorder recorder;
    private final boolean hasEnd;

    /** `hasEnd` is false if the hook does not show how consumption ends. */
    ConsumerHook(Membership membership, Recorder recorder, boolean hasEnd) {
        this.membership = membership;
        this.recorder = recorder;
        this.hasEnd = hasEnd;
    }

    @Override
    public String hookName() {
        return "audit-hooks";
    }

    @Override
    public void consumeMessageBefore(ConsumeMessageContext context) {
        try {
            membership.reads(context.getMq().getTopic());
            for (MessageExt message : context.getMsgList()) {
                Row row = row("deliver", context, message);
                String tags = message.getTags();
                row.tags = tags == null ? "" : tags;
                recorder.record(row);
            }
        } catch (RuntimeException error) {
            Failures.report(error);
        }
    }

    @Override
    public void consumeMessageAfter(ConsumeMessageContext context) {
        try {
            List<MessageExt> messages = context.getMsgList();
            // The listener may have accepted the first messages of several only; the hook does not show how many.
            boolean isKnown = !context.isSuccess() || messages.size() == 1 || membership.isOrderly();
            for (MessageExt message : hasEnd && isKnown ? messages : java.util.Collections.<MessageExt>emptyList()) {
                recorder.record(row(context.isSuccess() ? "consume_ok" : "consume_fail", context, message));
            }
        } catch (RuntimeException error) {
            Failures.report(error);
        }
    }

    private Row row(String kind, ConsumeMessageContext context, MessageExt message) {
        Row row = new Row(kind);
        String key = message.getProperty("UNIQ_KEY");
        row.messageId = key == null ? message.getMsgId() : key;
        // The queue that the client read: the message itself has its original topic again.
        row.topic = context.getMq().getTopic();
        row.queueId = context.getMq().getQueueId();
        row.queueOffset = message.getQueueOffset();
        row.commitOffset = message.getCommitLogOffset();
        row.group = context.getConsumerGroup();
        row.client = membership.client();
        row.keys = message.getKeys();
        row.bornMillis = message.getBornTimestamp();
        row.attributes = new String[] {"broker", context.getMq().getBrokerName()};
        return row;
    }
}
