package mqproof.hooks;

import java.util.List;

import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/** The consumer's own strategy, with a record of its results. */
final class ObservedStrategy implements AllocateMessageQueueStrategy {
    private final AllocateMessageQueueStrategy inner;
    private final Membership membership;

    ObservedStrategy(AllocateMessageQueueStrategy inner, Membership membership) {
        this.inner = inner;
        this.membership = membership;
    }

    @Override
    public List<MessageQueue> allocate(
        String group, String client, List<MessageQueue> queues, List<String> clients) {
        List<MessageQueue> owned = inner.allocate(group, client, queues, clients);
        try {
            if (!queues.isEmpty()) {
                membership.owns(queues.get(0).getTopic(), new java.util.ArrayList<>(owned));
            }
        } catch (RuntimeException error) {
            Failures.report(error);
        }
        return owned;
    }

    @Override
    public String getName() {
        return inner.getName();
    }
}
